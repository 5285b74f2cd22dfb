//! Ordinary least squares over few columns, by the normal equations. Columns that are combinations of earlier ones are left out, as in `lm`
//! of R.

/// Limit of a column's part beside the earlier ones, below which the column is a combination of them.
const COLLINEAR: f64 = 1e-9;

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// Coefficient of each column, and its variance relative to that of a response; `None` for a column that is a combination of earlier
    /// ones.
    pub coefficients: Vec<Option<(f64, f64)>>,
    /// Responses less the fitted values.
    pub residuals: Vec<f64>,
    /// Columns that are no combination of earlier ones.
    kept: Vec<usize>,
    /// Covariances of the coefficients of kept columns, relative to the variance of a response.
    covariances: Vec<Vec<f64>>,
}

impl Fit {
    /// Columns that are no combination of others.
    pub(super) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// Sum of the squares of residuals.
    pub(super) fn error_square(&self) -> f64 {
        self.residuals.iter().map(|e| e * e).sum()
    }

    /// Weighted sum of coefficients, and its variance relative to that of a response. `None` if a column was left out.
    pub(super) fn sum(&self, weights: &[(usize, f64)]) -> Option<(f64, f64)> {
        let each = weights.iter().map(|(column, weight)| {
            let place = self.kept.iter().position(|k| k == column)?;
            Some((place, self.coefficients[*column]?.0, *weight))
        });
        let each: Vec<(usize, f64, f64)> = each.collect::<Option<_>>()?;
        let variance = each.iter().flat_map(|(i, _, w)| {
            let others = each.iter();
            others.map(move |(j, _, v)| w * v * self.covariances[*i][*j])
        });
        Some((each.iter().map(|(_, c, w)| c * w).sum(), variance.sum()))
    }
}

/// Fits responses by columns of as many values.
pub(super) fn fit(columns: &[Vec<f64>], responses: &[f64]) -> Fit {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // The factorization L D L' of X'X, row by row. Columns of signs make integers, which a balanced design divides exactly.
    let mut kept: Vec<usize> = Vec::new();
    let mut lower: Vec<Vec<f64>> = Vec::new();
    let mut diagonal: Vec<f64> = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        let mut row: Vec<f64> = Vec::with_capacity(kept.len() + 1);
        for (j, other) in kept.iter().enumerate() {
            let earlier: f64 = (0..j).map(|k| row[k] * lower[j][k] * diagonal[k]).sum();
            row.push((dot(column, &columns[*other]) - earlier) / diagonal[j]);
        }
        let whole = dot(column, column);
        let earlier: f64 = row.iter().zip(&diagonal).map(|(l, d)| l * l * d).sum();
        if whole - earlier <= COLLINEAR * whole {
            continue;
        }
        kept.push(i);
        lower.push(row);
        diagonal.push(whole - earlier);
    }
    let solve = |right: Vec<f64>| -> Vec<f64> {
        let n = kept.len();
        let mut x = right;
        for i in 0..n {
            x[i] -= (0..i).map(|k| lower[i][k] * x[k]).sum::<f64>();
        }
        for i in 0..n {
            x[i] /= diagonal[i];
        }
        for i in (0..n).rev() {
            x[i] -= (i + 1..n).map(|k| lower[k][i] * x[k]).sum::<f64>();
        }
        x
    };
    let values = solve(kept.iter().map(|i| dot(&columns[*i], responses)).collect());
    let mut coefficients = vec![None; columns.len()];
    let mut covariances = Vec::with_capacity(kept.len());
    for (place, i) in kept.iter().enumerate() {
        let unit = (0..kept.len()).map(|k| f64::from(u8::from(k == place)));
        let covariance = solve(unit.collect());
        coefficients[*i] = Some((values[place], covariance[place]));
        covariances.push(covariance);
    }
    let residuals = responses.iter().enumerate().map(|(at, y)| {
        let each = kept.iter().zip(&values);
        y - each.map(|(i, v)| columns[*i][at] * v).sum::<f64>()
    });
    Fit {
        residuals: residuals.collect(),
        coefficients,
        kept,
        covariances,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line through four points by hand: the slope is 20 / 20, the mean is 6.
    #[test]
    fn a_line_and_a_column_that_others_make_up() {
        let columns = [
            vec![1.0; 4],
            vec![-3.0, -1.0, 1.0, 3.0],
            vec![-2.0, 0.0, 2.0, 4.0],
        ];
        let fit = fit(&columns, &[3.0, 5.0, 7.0, 9.0]);
        assert_eq!(
            fit.coefficients,
            [Some((6.0, 0.25)), Some((1.0, 0.05)), None]
        );
        assert_eq!((fit.rank(), &fit.residuals), (2, &vec![0.0; 4]));
        // The mean plus twice the slope; both are independent.
        assert_eq!(fit.sum(&[(0, 1.0), (1, 2.0)]), Some((8.0, 0.45)));
        assert_eq!(fit.sum(&[(2, 1.0)]), None);
    }
}
