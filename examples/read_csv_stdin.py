"""Read a CSV that is piped in.

    ./dev run examples/read_csv_stdin.py < examples/sales.csv
"""

import sys

import pandas as pd

sales = pd.read_csv(sys.stdin)
revenue = (sales["units"] * sales["price"]).groupby(sales["product"]).sum()
print(f"{len(sales)} rows")
print(revenue.sort_values(ascending=False).round(2).to_string(header=False))
