# R: a data set that it brings along, a linear model, a plot. Needs the template polyglot.
fit <- lm(mpg ~ wt, data = mtcars)
cat(sprintf("%d cars; each 1000 lbs cost %.1f miles per gallon (R² = %.2f)\n",
            nrow(mtcars), -coef(fit)[["wt"]], summary(fit)$r.squared))

by_cylinders <- aggregate(mpg ~ cyl, data = mtcars, FUN = mean)
print(by_cylinders, digits = 3)

plot(mtcars$wt, mtcars$mpg, xlab = "weight [1000 lbs]", ylab = "miles per gallon", pch = 19)
abline(fit, col = "firebrick")
