// A typed report over a CSV: interfaces, an enum and generics, with the types taken out before it runs.
//
//     ./dev run --file examples/sales.csv examples/typed_report.ts

import { readFileSync, writeFileSync } from "node:fs";

interface Sale {
    region: string;
    product: string;
    revenue: number;
}

enum Order {
    Rising = 1,
    Falling = -1,
}

function parse(text: string): Sale[] {
    const [, ...rows] = text.trim().split("\n");
    return rows.map((row) => {
        const [, region, product, units, price] = row.split(",");
        return { region, product, revenue: Number(units) * Number(price) };
    });
}

function totals<Key extends keyof Sale>(sales: Sale[], key: Key): Map<Sale[Key], number> {
    const sums = new Map<Sale[Key], number>();
    for (const sale of sales) sums.set(sale[key], (sums.get(sale[key]) ?? 0) + sale.revenue);
    return sums;
}

function ranked<Key>(sums: Map<Key, number>, order: Order): [Key, number][] {
    return [...sums].sort(([, a], [, b]) => order * (a - b));
}

const sales = parse(readFileSync("sales.csv", "utf8"));
for (const [region, sum] of ranked(totals(sales, "region"), Order.Falling)) {
    console.log(region.padEnd(8), sum.toFixed(1).padStart(7));
}

const best = ranked(totals(sales, "product"), Order.Falling)[0];
console.log(`\nbest product: ${best[0]}`);
writeFileSync("report.json", JSON.stringify(best));
