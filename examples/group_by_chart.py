"""Group a table, print it, draw it.

    ./dev run --file examples/sales.csv examples/group_by_chart.py
"""

import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv", parse_dates=["date"])
sales["revenue"] = sales["units"] * sales["price"]

by_region = sales.pivot_table(
    index="region", columns="product", values="revenue", aggfunc="sum", fill_value=0.0
)
print(by_region.round(2).to_string())
print(f"\nbest region: {by_region.sum(axis='columns').idxmax()}")

by_region.plot.barh(stacked=True, title="Revenue by region")
plt.xlabel("revenue")
plt.ylabel("")
plt.tight_layout()
plt.show()
