"""A shop's year in two charts and a table: the first thing to try.

    sudo ./dev run examples/quickstart.py
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

random = np.random.default_rng(seed=7)
days = pd.date_range("2025-01-01", "2025-12-31", name="day")
season = 1 + 0.35 * np.sin(2 * np.pi * (days.dayofyear - 80) / 365)
weekend = np.where(days.dayofweek >= 5, 1.6, 1.0)

sales = pd.DataFrame(
    {
        "ice cream": 40 * season**3 * weekend,
        "coffee": 65 / season * np.where(weekend > 1, 0.8, 1.1),
        "cake": 30 * weekend,
    },
    index=days,
)
sales = sales.mul(random.normal(1, 0.08, sales.shape)).round(2)
print(f"{len(sales)} days, {sales.columns.size} products, {sales.to_numpy().sum():,.0f} in the till\n")

months = sales.resample("MS").sum()
summary = pd.DataFrame(
    {
        "a day": sales.mean().round(1),
        "best month": months.idxmax().dt.strftime("%B"),
        "share": (sales.sum() / sales.to_numpy().sum()).map("{:.0%}".format),
    }
)
print(summary.to_string(), end="\n\n")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
months.set_axis(months.index.strftime("%b")).plot.area(ax=left, alpha=0.85, title="Sales by month")
week = sales.groupby(sales.index.dayofweek).mean()
week.index = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
week.plot.bar(ax=right, rot=0, legend=False, title="A usual week")
for axes in (left, right):
    axes.set_xlabel("")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

warm = sales["ice cream"].corr(pd.Series(season, index=days))
print(f"Ice cream follows the season (r = {warm:.2f}); coffee is for the rest of the year.")
