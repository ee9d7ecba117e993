//! A factor in memory, and the dense work on its panels.

use super::plate::Lower;
use super::symbolic::{Panel, Update, panels};
use crate::start;
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use std::ops::Range;
use std::rc::Rc;

/// Cycles of one step of the inner loop (four multiply-adds of doubles on registers) beside its four
/// loads.
const TILE_STEP_CYCLES: u64 = 26;
/// Cycles around a tile: addresses and the loop's set-up.
const TILE_CYCLES: u64 = 24;
/// Cycles of one multiply-add when a panel is finished, beside its loads.
const FINISH_CYCLES: u64 = 6;
/// Cycles of a square root or a division (R3010, double).
const DIVIDE_CYCLES: u64 = 30;
/// Cycles to place one row of the source among those of the target.
const PLACE_CYCLES: u64 = 6;
/// Bytes of an entry in the file that a matrix is read from: a value and a row (Harwell and Boeing's format).
const INPUT_BYTES_PER_ENTRY: u64 = 28;
/// Text of the update, of finishing a panel, of the task loop.
const UPDATE_BYTES: u64 = 1536;
const FINISH_BYTES: u64 = 1024;
const TASK_BYTES: u64 = 1024;

/// A matrix on its way to its factor. Clones name the same one.
#[derive(Clone)]
pub struct Factor {
    matrix: Rc<Lower>,
    panels: Rc<[Panel]>,
    /// The factor, panel by panel, row by row.
    elements: Array<f64>,
    /// Rows of all panels; a panel's start at `row_starts`.
    rows: Array<u32>,
    row_starts: Rc<[usize]>,
    /// Updates that each panel still waits for.
    missing: Array<u32>,
}

/// What a process needs to work on panels: text, and memory of its own for where the rows of a source
/// lie in the target.
#[derive(Clone)]
pub struct Tools {
    places: Array<u32>,
    text: Code,
}

impl Tools {
    /// Tools for so many processes that work on a factor.
    pub fn new(memory: &Memory, factor: &Factor, processes: usize) -> Vec<Self> {
        let most_rows = factor.panels.iter().map(|panel| panel.rows.len()).max().unwrap_or(0);
        let place = |_| memory.array(most_rows, Placement::FirstTouch);
        let places: Vec<Array<u32>> = (0..processes).map(place).collect();
        let text = memory.code(UPDATE_BYTES + FINISH_BYTES + TASK_BYTES);
        places.into_iter().map(|places| Self { places, text }).collect()
    }
}

impl Factor {
    /// Finds the structure of a matrix's factor (in the order that it is in), and lays the matrix into
    /// its panels, each of `max_width` columns at most.
    pub fn new(memory: &Memory, matrix: Lower, max_width: usize, placement: Placement) -> Self {
        let panels: Rc<[Panel]> = panels(&matrix, max_width).into();
        let elements = panels.iter().map(|panel| panel.rows.len() * panel.width).sum();
        let row_starts: Vec<usize> = panels
            .iter()
            .scan(0, |next, panel| {
                let start = *next;
                *next += panel.rows.len();
                Some(start)
            })
            .collect();
        let rows = panels.iter().map(|panel| panel.rows.len()).sum();
        let factor = Self {
            elements: memory.array(elements, placement),
            rows: memory.array(rows, placement),
            row_starts: row_starts.into(),
            missing: memory.array(panels.len(), Placement::FirstTouch),
            matrix: Rc::new(matrix),
            panels,
        };
        factor.fill();
        factor
    }

    /// Lays the matrix into the panels.
    fn fill(&self) {
        for (number, panel) in self.panels.iter().enumerate() {
            for (at, &row) in panel.rows.iter().enumerate() {
                self.rows.poke(self.row_starts[number] + at, row);
            }
            for column in 0..panel.width {
                for (row, value) in self.matrix.column(panel.first + column) {
                    if let Ok(at) = panel.rows.binary_search(&(row as u32)) {
                        self.elements.poke(panel.start + at * panel.width + column, value);
                    }
                }
            }
            for update in &panel.updates {
                self.missing.poke(update.target, self.missing.peek(update.target) + 1);
            }
        }
    }

    /// Reads the matrix, and sets the factor up.
    pub fn start(&self, cpu: &mut Cpu<'_>) {
        start::execute(cpu, self.matrix.values.len() as u64 * INPUT_BYTES_PER_ENTRY);
        start::set_up(cpu, &self.rows);
        start::set_up(cpu, &self.elements);
    }

    /// The elements of a panel.
    pub fn storage(&self, panel: usize) -> (&Array<f64>, Range<usize>) {
        let Panel { start, width, ref rows, .. } = self.panels[panel];
        (&self.elements, start..start + rows.len() * width)
    }

    /// All panels.
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }

    /// Panels that wait for no update: those that all begins with.
    pub fn ready(&self) -> impl Iterator<Item = usize> {
        (0..self.panels.len()).filter(|&panel| self.missing.peek(panel) == 0)
    }

    /// Does an update that a finished panel owes, and says whether it was the target's last. Nobody
    /// else may work on the target.
    pub fn apply(&self, cpu: &mut Cpu<'_>, source: usize, update: &Update, tools: &Tools) -> bool {
        self.update(cpu, source, update, tools);
        let missing = self.missing.get(cpu, update.target) - 1;
        self.missing.set(cpu, update.target, missing);
        missing == 0
    }

    /// Runs the text around a task.
    pub fn begin(&self, cpu: &mut Cpu<'_>, tools: &Tools) {
        cpu.execute(tools.text.part(UPDATE_BYTES + FINISH_BYTES, TASK_BYTES));
    }

    /// Factors a panel whose updates are all in: row by row, `x * L^T = row`.
    pub fn finish(&self, cpu: &mut Cpu<'_>, panel: &Panel, tools: &Tools) {
        let row_start = |row: usize| panel.start + row * panel.width;
        for row in 0..panel.rows.len() {
            cpu.fetch(tools.text.part(UPDATE_BYTES, FINISH_BYTES));
            for column in 0..panel.width.min(row + 1) {
                let (this, pivot) = (row_start(row), row_start(column));
                let mut sum = self.elements.get(cpu, this + column);
                for inner in 0..column {
                    sum -= self.elements.get(cpu, this + inner) * self.elements.get(cpu, pivot + inner);
                    cpu.compute(FINISH_CYCLES);
                }
                let value =
                    if row == column { sum.sqrt() } else { sum / self.elements.get(cpu, pivot + column) };
                cpu.compute(DIVIDE_CYCLES);
                self.elements.set(cpu, this + column, value);
            }
        }
    }

    /// Subtracts the product of a source's rows from its target. Nobody else may work on the target.
    fn update(&self, cpu: &mut Cpu<'_>, source: usize, update: &Update, tools: &Tools) {
        let places = &tools.places;
        self.place_rows(cpu, source, update, places);
        let panel = &self.panels[source];
        let end = panel.rows.len();
        for row in (update.from..end).step_by(2) {
            cpu.fetch(tools.text.part(0, UPDATE_BYTES));
            for column in (update.from..update.to.min(row + 2)).step_by(2) {
                let rows = [row, (row + 1).min(end - 1)];
                let columns = [column, (column + 1).min(update.to - 1)];
                let sums = self.products(cpu, panel, rows, columns);
                self.subtract(cpu, &self.panels[update.target], [rows, columns], places, sums);
            }
        }
    }

    /// Finds where each row of the source lies in the target.
    fn place_rows(&self, cpu: &mut Cpu<'_>, source: usize, update: &Update, places: &Array<u32>) {
        let mut place = self.row_starts[update.target];
        for row in update.from..self.panels[source].rows.len() {
            let wanted = self.rows.get(cpu, self.row_starts[source] + row);
            while self.rows.get(cpu, place) != wanted {
                cpu.compute(2);
                place += 1;
            }
            places.set(cpu, row, (place - self.row_starts[update.target]) as u32);
            cpu.compute(PLACE_CYCLES);
        }
    }

    /// The products of two rows of a panel with two others, summed over its columns. At an odd edge
    /// the two are one and the same.
    #[inline]
    fn products(&self, cpu: &mut Cpu<'_>, panel: &Panel, rows: [usize; 2], columns: [usize; 2]) -> [f64; 4] {
        let [r0, r1] = rows.map(|row| panel.start + row * panel.width);
        let [c0, c1] = columns.map(|row| panel.start + row * panel.width);
        let mut sums = [0.0; 4];
        cpu.compute(TILE_CYCLES);
        for inner in 0..panel.width {
            let (x0, x1) = (self.elements.get(cpu, r0 + inner), self.elements.get(cpu, r1 + inner));
            let (y0, y1) = (self.elements.get(cpu, c0 + inner), self.elements.get(cpu, c1 + inner));
            sums[0] += x0 * y0;
            sums[1] += x0 * y1;
            sums[2] += x1 * y0;
            sums[3] += x1 * y1;
            cpu.compute(TILE_STEP_CYCLES);
        }
        sums
    }

    /// Subtracts a tile from the target, leaving out what an odd edge has doubled.
    #[inline]
    fn subtract(
        &self,
        cpu: &mut Cpu<'_>,
        target: &Panel,
        [rows, columns]: [[usize; 2]; 2],
        places: &Array<u32>,
        sums: [f64; 4],
    ) {
        for (i, &row) in rows.iter().enumerate().filter(|&(i, row)| i == 0 || *row != rows[0]) {
            let target_row = target.start + places.get(cpu, row) as usize * target.width;
            for (j, &column) in
                columns.iter().enumerate().filter(|&(j, column)| j == 0 || *column != columns[0])
            {
                let at = target_row + places.peek(column) as usize;
                let value = self.elements.get(cpu, at) - sums[i * 2 + j];
                self.elements.set(cpu, at, value);
            }
        }
    }

    /// Compares `L * L^T` with the matrix on a vector.
    pub fn check(&self) -> Result<(), String> {
        let vector: Vec<f64> = (0..self.matrix.columns()).map(|i| 1.0 + (i * i % 7) as f64).collect();
        let wanted = self.matrix.times(&vector);
        let got = self.factor_times(&self.transpose_times(&vector));
        let size = wanted.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        let residual = wanted.iter().zip(&got).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
        if residual <= 1e-9 * size {
            return Ok(());
        }
        Err(format!("the factor's product differs from the matrix by {residual:e} of {size:e}"))
    }

    /// Elements of the factor: row, column, value.
    fn factor(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        self.panels.iter().flat_map(move |panel| {
            panel.rows.iter().enumerate().flat_map(move |(at, &row)| {
                (0..panel.width.min(at + 1)).map(move |column| {
                    let value = self.elements.peek(panel.start + at * panel.width + column);
                    (row as usize, panel.first + column, value)
                })
            })
        })
    }

    fn factor_times(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; vector.len()];
        self.factor().for_each(|(row, column, value)| product[row] += value * vector[column]);
        product
    }

    fn transpose_times(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; vector.len()];
        self.factor().for_each(|(row, column, value)| product[column] += value * vector[row]);
        product
    }
}
