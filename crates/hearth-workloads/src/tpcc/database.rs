//! The tables, and what the database says.

use super::store::{Engine, Rows, Table, Tree};
use crate::order_entry::Draws;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use std::cell::RefCell;

/// Cardinalities (clause 1.2.1): districts of a warehouse, customers of a district, items, last names.
pub(super) const DISTRICTS: u64 = 10;
pub(super) const CUSTOMERS: u64 = 3_000;
pub(super) const ITEMS: u64 = 100_000;
pub(super) const NAMES: u64 = 1_000;
/// Orders of each district at first, and how many of them are still to be delivered (clause 4.3.3.1).
const FIRST_ORDERS: u64 = 3_000;
const FIRST_UNDELIVERED: u64 = 900;
/// Lines of an order.
pub(super) const LINES: [u32; 2] = [5, 15];
/// Room for an order's lines.
pub(super) const LINE_SLOTS: u64 = 16;
/// Orders of a district that are kept: the next one takes the place of the oldest, so that the database stays of
/// bounded size however long it runs.
pub(super) const ORDER_SLOTS: u64 = 4_096;
/// Rows of the history that are kept, of each warehouse.
const HISTORY_SLOTS: u64 = 30_000;

/// Typical lengths of rows in bytes (clause 1.2.1).
const WAREHOUSE_BYTES: u64 = 89;
const DISTRICT_BYTES: u64 = 95;
const CUSTOMER_BYTES: u64 = 655;
const HISTORY_BYTES: u64 = 46;
const ORDER_BYTES: u64 = 24;
const NEW_ORDER_BYTES: u64 = 8;
const LINE_BYTES: u64 = 54;
const STOCK_BYTES: u64 = 306;
const ITEM_BYTES: u64 = 82;

/// What a district says.
#[derive(Clone, Copy, Default)]
pub(super) struct District {
    /// The number of the next order.
    pub(super) next: u64,
    /// The oldest order that is still to be delivered.
    pub(super) oldest: u64,
    /// What was paid.
    pub(super) paid: u64,
}

/// What an order says.
#[derive(Clone, Copy, Default)]
pub(super) struct Order {
    pub(super) customer: u64,
    pub(super) items: [u32; LINE_SLOTS as usize],
    pub(super) lines: u64,
}

/// What is in the rows, as far as transactions go by it.
#[derive(Default)]
pub(super) struct Contents {
    /// What was paid to each warehouse.
    pub(super) warehouses: Vec<u64>,
    pub(super) districts: Vec<District>,
    /// By slot.
    pub(super) orders: Vec<Order>,
    pub(super) history: u64,
}

/// Everything. Keys are numbers from 0: district `w * DISTRICTS + d`, customer `district * CUSTOMERS + c`, order
/// `district * ORDER_SLOTS + o % ORDER_SLOTS`, line `order * LINE_SLOTS + l`, stock `w * ITEMS + i`.
pub(super) struct Database {
    pub(super) engine: Engine,
    pub(super) warehouses: u64,
    pub(super) warehouse: Table,
    pub(super) district: Table,
    pub(super) customer: Table,
    /// Customers by district and name.
    pub(super) names: Tree,
    pub(super) history: Rows,
    pub(super) order: Table,
    /// The last order of each customer who has any.
    pub(super) last_order: Tree,
    pub(super) new_order: Table,
    pub(super) line: Table,
    pub(super) stock: Table,
    pub(super) item: Table,
    pub(super) contents: RefCell<Contents>,
}

/// The keys of [`Database::names`] that a name of a district has.
pub(super) fn name_range(district: u64, name: u64) -> [u64; 2] {
    [0, 1].map(|after| (district * NAMES + name + after) * CUSTOMERS)
}

/// The slot of an order.
pub(super) fn order_slot(district: u64, number: u64) -> u64 {
    district * ORDER_SLOTS + number % ORDER_SLOTS
}

impl Database {
    /// A database of so many warehouses, filled.
    pub(super) fn new(memory: &Memory, warehouses: u64, draws: &mut Draws) -> Self {
        let districts = warehouses * DISTRICTS;
        let customers = districts * CUSTOMERS;
        let orders = districts * ORDER_SLOTS;
        let database = Self {
            engine: Engine::new(memory),
            warehouses,
            warehouse: Table::full(memory, warehouses, WAREHOUSE_BYTES),
            district: Table::full(memory, districts, DISTRICT_BYTES),
            customer: Table::full(memory, customers, CUSTOMER_BYTES),
            names: Tree::new(memory, customers),
            history: Rows::new(memory, warehouses * HISTORY_SLOTS, HISTORY_BYTES),
            order: Table::new(memory, orders, ORDER_BYTES),
            last_order: Tree::new(memory, customers),
            new_order: Table::new(memory, orders, NEW_ORDER_BYTES),
            line: Table::new(memory, orders * LINE_SLOTS, LINE_BYTES),
            stock: Table::full(memory, warehouses * ITEMS, STOCK_BYTES),
            item: Table::full(memory, ITEMS, ITEM_BYTES),
            contents: RefCell::new(Contents {
                warehouses: vec![0; warehouses as usize],
                districts: vec![District::default(); districts as usize],
                orders: vec![Order::default(); orders as usize],
                history: 0,
            }),
        };
        (0..districts).for_each(|district| database.load(district, draws));
        database
    }

    /// Gives everything memory.
    pub(super) fn touch(&self, cpu: &mut Cpu<'_>) {
        let Self { warehouse, district, customer, order, new_order, line, stock, item, .. } = self;
        for table in [warehouse, district, customer, order, new_order, line, stock, item] {
            table.tree.touch(cpu);
            table.rows.touch(cpu);
        }
        self.names.touch(cpu);
        self.last_order.touch(cpu);
        self.history.touch(cpu);
    }

    /// Rows of the history.
    pub(super) fn history_slots(&self) -> u64 {
        self.warehouses * HISTORY_SLOTS
    }

    /// Fills a district: the names of its customers, and an order of each.
    fn load(&self, district: u64, draws: &mut Draws) {
        for customer in 0..CUSTOMERS {
            let name = if customer < NAMES { customer } else { u64::from(draws.name(NAMES as u32)) };
            let [first, _] = name_range(district, name);
            self.names.load(first + customer, district * CUSTOMERS + customer);
        }
        let mut contents = self.contents.borrow_mut();
        for number in 0..FIRST_ORDERS {
            let slot = order_slot(district, number);
            let customer = district * CUSTOMERS + (number * 7919 + 13) % CUSTOMERS;
            let lines = u64::from(draws.between(LINES[0], LINES[1]));
            let mut order = Order { customer, lines, ..Order::default() };
            order.items.iter_mut().for_each(|item| *item = draws.below(ITEMS as u32));
            self.order.tree.load(slot, slot);
            self.last_order.load(customer, slot);
            for line in slot * LINE_SLOTS..slot * LINE_SLOTS + lines {
                self.line.tree.load(line, line);
            }
            if number >= FIRST_ORDERS - FIRST_UNDELIVERED {
                self.new_order.tree.load(slot, slot);
            }
            contents.orders[slot as usize] = order;
        }
        let oldest = FIRST_ORDERS - FIRST_UNDELIVERED;
        contents.districts[district as usize] = District { next: FIRST_ORDERS, oldest, paid: 0 };
    }

    /// Consistency (clause 3.3.2, conditions 1, 3 and 4): a warehouse was paid what its districts were; the orders
    /// still to be delivered are those from the oldest on; every order has its lines.
    pub(super) fn check(&self) -> Result<(), String> {
        let contents = self.contents.borrow();
        for (warehouse, &paid) in contents.warehouses.iter().enumerate() {
            let districts = &contents.districts[warehouse * DISTRICTS as usize..][..DISTRICTS as usize];
            if districts.iter().map(|district| district.paid).sum::<u64>() != paid {
                return Err(format!("warehouse {warehouse} was not paid what its districts were"));
            }
        }
        let mut wanted: Vec<u64> = Vec::new();
        for (number, district) in contents.districts.iter().enumerate() {
            wanted.extend((district.oldest..district.next).map(|order| order_slot(number as u64, order)));
        }
        wanted.sort_unstable();
        let new_orders = self.new_order.tree.check().map_err(|error| format!("new orders: {error}"))?;
        if !new_orders.iter().map(|&(key, _)| key).eq(wanted) {
            return Err("the orders still to be delivered are not those since the oldest".into());
        }
        self.check_lines(&contents)
    }

    fn check_lines(&self, contents: &Contents) -> Result<(), String> {
        let orders = self.order.tree.check().map_err(|error| format!("orders: {error}"))?;
        let lines = self.line.tree.check().map_err(|error| format!("lines: {error}"))?;
        let mut lines = lines.into_iter().map(|(key, _)| key).peekable();
        for (slot, _) in orders {
            for line in 0..contents.orders[slot as usize].lines {
                if lines.next() != Some(slot * LINE_SLOTS + line) {
                    return Err(format!("line {line} of order {slot} is not there"));
                }
            }
            // Lines of an order that had this slot before.
            while lines.next_if(|line| line / LINE_SLOTS == slot).is_some() {}
        }
        lines.next().map_or(Ok(()), |line| Err(format!("line {line} is of no order")))
    }
}
