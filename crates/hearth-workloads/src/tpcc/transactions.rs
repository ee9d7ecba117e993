//! The five kinds of transaction (clauses 2.4 to 2.8).

use super::database::{
    CUSTOMERS, DISTRICTS, Database, ITEMS, LINE_SLOTS, LINES, NAMES, ORDER_SLOTS, Order, name_range,
    order_slot,
};
use crate::order_entry::{Draws, Kind, Mix};
use hearth_sim::program::Cpu;
use std::collections::BTreeSet;

/// How many of a hundred transactions are of each kind (clause 5.2.3, with payments and others at their least).
pub(super) const MIX: Mix = [
    (Kind::NewOrder, 45),
    (Kind::Payment, 43),
    (Kind::OrderStatus, 4),
    (Kind::Delivery, 4),
    (Kind::StockLevel, 4),
];

/// New orders that name an item that does not exist, and end without a change, in percent.
const ROLLED_BACK: u32 = 1;
/// Lines that another warehouse supplies, payments of customers of another, and customers who are known by their
/// names, in percent.
const REMOTE_LINES: u32 = 1;
const REMOTE_PAYMENTS: u32 = 15;
const BY_NAME: u32 = 60;
/// Orders of a district that its stock level looks at.
const RECENT_ORDERS: u64 = 20;

impl Database {
    /// Does a transaction of a kind that is drawn, for a warehouse that is drawn.
    pub(super) fn transact(&self, cpu: &mut Cpu<'_>, draws: &mut Draws) {
        let warehouse = u64::from(draws.below(self.warehouses as u32));
        let district = warehouse * DISTRICTS + u64::from(draws.below(DISTRICTS as u32));
        self.engine.begin(cpu);
        match draws.kind(&MIX) {
            Kind::NewOrder => self.new_order(cpu, draws, district),
            Kind::Payment => self.pay(cpu, draws, district),
            Kind::OrderStatus => self.order_status(cpu, draws, district),
            Kind::Delivery => self.deliver(cpu, warehouse),
            Kind::StockLevel => self.stock_level(cpu, district),
        }
        self.engine.end(cpu);
    }

    /// A warehouse, mostly the given one.
    fn near(&self, draws: &mut Draws, warehouse: u64, elsewhere: u32) -> u64 {
        match draws.percent(elsewhere) && self.warehouses > 1 {
            true => (warehouse + 1 + u64::from(draws.below(self.warehouses as u32 - 1))) % self.warehouses,
            false => warehouse,
        }
    }

    pub(super) fn new_order(&self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let engine = &self.engine;
        let warehouse = district / DISTRICTS;
        let customer = district * CUSTOMERS + u64::from(draws.customer(CUSTOMERS as u32));
        let lines = u64::from(draws.between(LINES[0], LINES[1]));
        let mut order = Order { customer, lines, ..Order::default() };
        order.items.iter_mut().for_each(|item| *item = draws.item(ITEMS as u32));
        let is_rolled_back = draws.percent(ROLLED_BACK);
        self.warehouse.read(cpu, engine, warehouse);
        self.customer.read(cpu, engine, customer);
        order.items[..lines as usize].iter().for_each(|&item| _ = self.item.read(cpu, engine, item.into()));
        let state = self.contents.borrow().districts[district as usize];
        if is_rolled_back || state.next - state.oldest == ORDER_SLOTS {
            return;
        }
        self.district.change(cpu, engine, district);
        let slot = order_slot(district, state.next);
        self.order.put(cpu, engine, slot);
        self.new_order.put(cpu, engine, slot);
        self.last_order.put(cpu, engine, customer, slot);
        for (line, &item) in (0..lines).zip(&order.items) {
            let supplier = self.near(draws, warehouse, REMOTE_LINES);
            self.stock.change(cpu, engine, supplier * ITEMS + u64::from(item));
            self.line.put(cpu, engine, slot * LINE_SLOTS + line);
        }
        let mut contents = self.contents.borrow_mut();
        contents.orders[slot as usize] = order;
        contents.districts[district as usize].next += 1;
    }

    /// A customer of the district, by name or number: reads the rows of all who have the name.
    fn find_customer(&self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) -> u64 {
        let engine = &self.engine;
        if !draws.percent(BY_NAME) {
            let customer = district * CUSTOMERS + u64::from(draws.customer(CUSTOMERS as u32));
            self.customer.read(cpu, engine, customer);
            return customer;
        }
        let range = name_range(district, u64::from(draws.name(NAMES as u32)));
        let named = self.names.range(cpu, engine, range, CUSTOMERS as usize);
        named.iter().for_each(|&(_, customer)| _ = self.customer.read(cpu, engine, customer));
        named.get(named.len() / 2).map_or(district * CUSTOMERS, |&(_, customer)| customer)
    }

    fn pay(&self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let engine = &self.engine;
        let warehouse = district / DISTRICTS;
        let amount = u64::from(draws.between(100, 500_000));
        self.warehouse.change(cpu, engine, warehouse);
        self.district.change(cpu, engine, district);
        let home = self.near(draws, warehouse, REMOTE_PAYMENTS);
        let home = if home == warehouse { district } else { home * DISTRICTS + district % DISTRICTS };
        let customer = self.find_customer(cpu, draws, home);
        self.customer.rows.write(cpu, engine, customer);
        let mut contents = self.contents.borrow_mut();
        contents.warehouses[warehouse as usize] += amount;
        contents.districts[district as usize].paid += amount;
        contents.history += 1;
        let row = contents.history % self.history_slots();
        drop(contents);
        self.history.write(cpu, engine, row);
    }

    fn order_status(&self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let engine = &self.engine;
        let customer = self.find_customer(cpu, draws, district);
        let Some(slot) = self.last_order.get(cpu, engine, customer) else { return };
        self.order.read(cpu, engine, slot);
        self.read_lines(cpu, [slot, slot + 1]);
    }

    /// Reads all lines of the orders in a range of slots.
    fn read_lines(&self, cpu: &mut Cpu<'_>, slots: [u64; 2]) {
        let range = slots.map(|slot| slot * LINE_SLOTS);
        let lines = self.line.tree.range(cpu, &self.engine, range, usize::MAX);
        lines.iter().for_each(|&(_, row)| self.line.rows.read(cpu, row));
    }

    /// Delivers the oldest order of each district of a warehouse.
    pub(super) fn deliver(&self, cpu: &mut Cpu<'_>, warehouse: u64) {
        let engine = &self.engine;
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            let state = self.contents.borrow().districts[district as usize];
            let first = order_slot(district, state.oldest);
            let range = [first, (district + 1) * ORDER_SLOTS];
            let oldest = self.new_order.tree.range(cpu, engine, range, 1);
            let Some(&(slot, _)) = oldest.first() else { continue };
            self.new_order.tree.remove(cpu, engine, slot);
            self.order.change(cpu, engine, slot);
            let order = self.contents.borrow().orders[slot as usize];
            (0..order.lines).for_each(|line| self.line.change(cpu, engine, slot * LINE_SLOTS + line));
            self.customer.change(cpu, engine, order.customer);
            self.contents.borrow_mut().districts[district as usize].oldest += 1;
        }
    }

    /// Counts the items of the last orders of a district of which little is in stock.
    fn stock_level(&self, cpu: &mut Cpu<'_>, district: u64) {
        let engine = &self.engine;
        self.district.read(cpu, engine, district);
        let next = self.contents.borrow().districts[district as usize].next;
        let mut items: BTreeSet<u32> = BTreeSet::new();
        for number in next - RECENT_ORDERS..next {
            let slot = order_slot(district, number);
            self.read_lines(cpu, [slot, slot + 1]);
            let order = self.contents.borrow().orders[slot as usize];
            items.extend(&order.items[..order.lines as usize]);
        }
        let warehouse = district / DISTRICTS;
        items.iter().for_each(|&item| _ = self.stock.read(cpu, engine, warehouse * ITEMS + u64::from(item)));
    }
}
