// Java: records, streams, a CSV beside the program, arguments. Needs the template polyglot.

import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;

public class Inventory {
    record Sale(String region, String product, double amount) {}

    public static void main(String[] args) throws IOException {
        List<Sale> sales;
        try (Stream<String> lines = Files.lines(Path.of("sales.csv"))) {
            sales = lines.skip(1).map(Inventory::parse).toList();
        }
        System.out.printf(Locale.ROOT, "%d sales%n", sales.size());
        sales.stream()
                .filter(sale -> args.length == 0 || List.of(args).contains(sale.product()))
                .collect(Collectors.groupingBy(Sale::product, TreeMap::new, Collectors.summingDouble(Sale::amount)))
                .forEach((product, sum) -> System.out.printf(Locale.ROOT, "%-8s %8.2f%n", product, sum));
    }

    private static Sale parse(String line) {
        String[] fields = line.split(",");
        return new Sale(fields[1], fields[2], Double.parseDouble(fields[3]) * Double.parseDouble(fields[4]));
    }
}
