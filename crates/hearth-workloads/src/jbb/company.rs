//! The company's objects, and the transactions on them.

use super::heap::{Nursery, copy};
use super::map::Map;
use crate::filled::touch_pages;
use crate::order_entry::{Draws, Kind, Mix};
use hearth_hardware::{Address, Placement, Segment};
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::Cpu;
use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use std::collections::BTreeSet;

/// How often each kind is drawn: ten new orders and payments to one of each other.
const MIX: Mix = [
    (Kind::NewOrder, 10),
    (Kind::Payment, 10),
    (Kind::OrderStatus, 1),
    (Kind::Delivery, 1),
    (Kind::StockLevel, 1),
];

/// Cardinalities: districts of a warehouse, customers of a district, items, last names of a district, orders of a
/// district that are kept, and how many of these are still to be delivered at first.
const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 600;
const ITEMS: u64 = 20_000;
const ORDERS: u64 = 256;
const UNDELIVERED: u64 = 77;
/// Lines of an order, and orders that a stock level looks at.
const LINES: [u32; 2] = [5, 15];
const RECENT_ORDERS: u64 = 20;

/// Bytes of objects with their strings, of two bytes a character: a stock has 290 characters, a customer 655.
const STOCK_BYTES: u64 = 680;
const CUSTOMER_BYTES: u64 = 1_400;
const ITEM_BYTES: u64 = 200;
const DISTRICT_BYTES: u64 = 200;
/// An order without its lines, and a line.
const ORDER_BYTES: u64 = 96;
const LINE_BYTES: u64 = 64;
const MAX_ORDER_BYTES: u64 = ORDER_BYTES + LINES[1] as u64 * LINE_BYTES;
/// Numbers and references of an object, which transactions look at; the rest is text.
const FIELDS_BYTES: u64 = 64;
/// What each transaction makes and forgets. A version of the benchmark of 70,000 transactions makes some 339 MB of
/// objects (recalled from papers on garbage collection of Jikes RVM's `pseudojbb`).
const FORGOTTEN_BYTES: u64 = 4_096;

/// Compiled text of each kind, and what all share; cycles of a transaction, and of each line or order that it deals
/// with, beside references and trees. Assumptions.
const TEXT_BYTES: u64 = 8 << 10;
const TRANSACTION_CYCLES: u64 = 30_000;
const LINE_CYCLES: u64 = 1_500;

/// An order.
#[derive(Clone, Copy, Default)]
struct Order {
    customer: u64,
    items: [u32; LINES[1] as usize],
    lines: u64,
    /// Where it lies in the nursery, until it is copied out.
    young: Option<Address>,
}

impl Order {
    fn bytes(&self) -> u64 {
        ORDER_BYTES + self.lines * LINE_BYTES
    }
}

#[derive(Clone, Copy, Default)]
struct District {
    next: u64,
    oldest: u64,
    paid: u64,
}

/// Everything. Numbers are as in `tpcc`: district `w * DISTRICTS + d`, and so on.
pub(super) struct Company {
    warehouses: u64,
    nursery: Nursery,
    text: Code,
    items: Map,
    stocks: Map,
    customers: Map,
    item: Segment,
    stock: Segment,
    customer: Segment,
    district: Segment,
    /// Where orders lie that were copied out of the nursery.
    old_orders: Segment,
    districts: Vec<District>,
    /// By slot: `district * ORDERS + number % ORDERS`.
    orders: Vec<Order>,
    /// The slots of orders that are in the nursery.
    young: Vec<u64>,
    /// What each warehouse was paid.
    paid: Vec<u64>,
    last_order: Vec<Option<u64>>,
}

impl Company {
    pub(super) fn new(memory: &Memory, warehouses: u64, seed: u64, draws: &mut Draws) -> Self {
        let random = &mut Pcg32::seed_from_u64(seed);
        let districts = warehouses * DISTRICTS;
        let [stocks, customers, orders] = [warehouses * ITEMS, districts * CUSTOMERS, districts * ORDERS];
        let objects = |count: u64, bytes: u64| memory.segment(count * bytes, Placement::FirstTouch);
        let mut company = Self {
            warehouses,
            nursery: Nursery::new(memory),
            text: memory.code(TEXT_BYTES * (MIX.len() as u64 + 1)),
            items: Map::new(memory, ITEMS as usize, random),
            stocks: Map::new(memory, stocks as usize, random),
            customers: Map::new(memory, customers as usize, random),
            item: objects(ITEMS, ITEM_BYTES),
            stock: objects(stocks, STOCK_BYTES),
            customer: objects(customers, CUSTOMER_BYTES),
            district: objects(districts, DISTRICT_BYTES),
            old_orders: objects(orders, MAX_ORDER_BYTES),
            districts: vec![
                District { next: ORDERS, oldest: ORDERS - UNDELIVERED, paid: 0 };
                districts as usize
            ],
            orders: Vec::new(),
            young: Vec::new(),
            paid: vec![0; warehouses as usize],
            last_order: vec![None; customers as usize],
        };
        for slot in 0..orders {
            let order = draw_order(draws, slot / ORDERS);
            company.last_order[order.customer as usize] = Some(slot);
            company.orders.push(order);
        }
        company
    }

    /// Gives all objects memory.
    pub(super) fn touch(&self, cpu: &mut Cpu<'_>) {
        [&self.items, &self.stocks, &self.customers].into_iter().for_each(|map| map.touch(cpu));
        for objects in [self.item, self.stock, self.customer, self.district, self.old_orders] {
            touch_pages(cpu, objects.base, objects.bytes);
        }
    }

    /// Does a transaction of a kind that is drawn, for a warehouse that is drawn.
    pub(super) fn transact(&mut self, cpu: &mut Cpu<'_>, draws: &mut Draws) {
        let warehouse = u64::from(draws.below(self.warehouses as u32));
        let district = warehouse * DISTRICTS + u64::from(draws.below(DISTRICTS as u32));
        let kind = draws.kind(&MIX);
        let own = MIX.iter().position(|&(other, _)| other == kind).unwrap_or(0) as u64;
        cpu.fetch(self.text.part(0, TEXT_BYTES));
        cpu.fetch(self.text.part((own + 1) * TEXT_BYTES, TEXT_BYTES));
        cpu.compute(TRANSACTION_CYCLES);
        self.make(cpu, FORGOTTEN_BYTES);
        match kind {
            Kind::NewOrder => self.new_order(cpu, draws, district),
            Kind::Payment => self.pay(cpu, draws, district),
            Kind::OrderStatus => self.order_status(cpu, draws, district),
            Kind::Delivery => self.deliver(cpu, warehouse),
            Kind::StockLevel => self.stock_level(cpu, district),
        }
    }

    /// Makes an object; first makes room, if there is none.
    fn make(&mut self, cpu: &mut Cpu<'_>, bytes: u64) -> Address {
        if !self.nursery.has_room(bytes) {
            for slot in std::mem::take(&mut self.young) {
                let order = self.orders[slot as usize];
                if let Some(from) = order.young {
                    copy(cpu, from, self.old_orders.base + slot * MAX_ORDER_BYTES, order.bytes());
                    self.orders[slot as usize].young = None;
                }
            }
            self.nursery.clear();
        }
        self.nursery.make(cpu, bytes)
    }

    fn read_fields(cpu: &mut Cpu<'_>, objects: Segment, number: u64, bytes: u64) {
        cpu.read_span(objects.base + number * bytes, FIELDS_BYTES);
    }

    fn read_customer(&self, cpu: &mut Cpu<'_>, customer: u64) {
        self.customers.get(cpu, customer);
        Self::read_fields(cpu, self.customer, customer, CUSTOMER_BYTES);
    }

    fn read_stock(&self, cpu: &mut Cpu<'_>, warehouse: u64, item: u32) -> Address {
        let number = warehouse * ITEMS + u64::from(item);
        self.stocks.get(cpu, number);
        Self::read_fields(cpu, self.stock, number, STOCK_BYTES);
        self.stock.base + number * STOCK_BYTES
    }

    fn order_address(&self, slot: u64) -> Address {
        self.orders[slot as usize].young.unwrap_or(self.old_orders.base + slot * MAX_ORDER_BYTES)
    }

    /// Reads an order with its lines.
    fn read_order(&self, cpu: &mut Cpu<'_>, slot: u64) -> Order {
        let order = self.orders[slot as usize];
        cpu.read_span(self.order_address(slot), order.bytes());
        cpu.compute(LINE_CYCLES * order.lines);
        order
    }

    fn new_order(&mut self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let District { next, oldest, .. } = self.districts[district as usize];
        Self::read_fields(cpu, self.district, district, DISTRICT_BYTES);
        let mut order = draw_order(draws, district);
        self.read_customer(cpu, order.customer);
        for &item in &order.items[..order.lines as usize] {
            self.items.get(cpu, u64::from(item));
            Self::read_fields(cpu, self.item, u64::from(item), ITEM_BYTES);
            let stock = self.read_stock(cpu, district / DISTRICTS, item);
            cpu.write_span(stock + 16, 24);
            cpu.compute(LINE_CYCLES);
        }
        let slot = district * ORDERS + next % ORDERS;
        order.young = Some(self.make(cpu, order.bytes()));
        self.orders[slot as usize] = order;
        self.young.push(slot);
        self.last_order[order.customer as usize] = Some(slot);
        let oldest = oldest.max((next + 1).saturating_sub(ORDERS));
        let district = &mut self.districts[district as usize];
        (district.next, district.oldest) = (next + 1, oldest);
    }

    fn pay(&mut self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let amount = u64::from(draws.between(100, 500_000));
        let customer = district * CUSTOMERS + u64::from(draws.customer(CUSTOMERS as u32));
        self.read_customer(cpu, customer);
        cpu.write_span(self.customer.base + customer * CUSTOMER_BYTES + 16, 24);
        cpu.write_span(self.district.base + district * DISTRICT_BYTES + 16, 8);
        self.make(cpu, LINE_BYTES);
        self.districts[district as usize].paid += amount;
        self.paid[(district / DISTRICTS) as usize] += amount;
    }

    fn order_status(&self, cpu: &mut Cpu<'_>, draws: &mut Draws, district: u64) {
        let customer = district * CUSTOMERS + u64::from(draws.customer(CUSTOMERS as u32));
        self.read_customer(cpu, customer);
        if let Some(slot) = self.last_order[customer as usize] {
            self.read_order(cpu, slot);
        }
    }

    /// Delivers the oldest order of each district of a warehouse.
    fn deliver(&mut self, cpu: &mut Cpu<'_>, warehouse: u64) {
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            let District { next, oldest, .. } = self.districts[district as usize];
            if oldest == next {
                continue;
            }
            let slot = district * ORDERS + oldest % ORDERS;
            let order = self.read_order(cpu, slot);
            let address = self.order_address(slot);
            (0..order.lines).for_each(|line| cpu.write(address + ORDER_BYTES + line * LINE_BYTES));
            self.read_customer(cpu, order.customer);
            cpu.write(self.customer.base + order.customer * CUSTOMER_BYTES + 16);
            self.districts[district as usize].oldest += 1;
        }
    }

    /// Counts the items of the last orders of a district of which little is in stock.
    fn stock_level(&self, cpu: &mut Cpu<'_>, district: u64) {
        let next = self.districts[district as usize].next;
        let mut items = BTreeSet::new();
        for number in next - RECENT_ORDERS..next {
            let order = self.read_order(cpu, district * ORDERS + number % ORDERS);
            items.extend(order.items[..order.lines as usize].iter().copied());
        }
        for item in items {
            self.read_stock(cpu, district / DISTRICTS, item);
        }
    }

    /// What warehouses were paid is what their districts were; no order is in the nursery that is not known to be.
    pub(super) fn check(&self) -> Result<(), String> {
        for (warehouse, &paid) in self.paid.iter().enumerate() {
            let districts = &self.districts[warehouse * DISTRICTS as usize..][..DISTRICTS as usize];
            if districts.iter().map(|district| district.paid).sum::<u64>() != paid {
                return Err(format!("warehouse {warehouse} was not paid what its districts were"));
            }
        }
        let young: BTreeSet<u64> = self.young.iter().copied().collect();
        let lost = |(slot, order): (usize, &Order)| order.young.is_some() && !young.contains(&(slot as u64));
        match self.orders.iter().enumerate().any(lost) {
            true => Err("an order was left in the nursery".into()),
            false => Ok(()),
        }
    }
}

/// An order of a customer of a district.
fn draw_order(draws: &mut Draws, district: u64) -> Order {
    let customer = district * CUSTOMERS + u64::from(draws.customer(CUSTOMERS as u32));
    let lines = u64::from(draws.between(LINES[0], LINES[1]));
    let mut order = Order { customer, lines, ..Order::default() };
    order.items.iter_mut().for_each(|item| *item = draws.item(ITEMS as u32));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Built, trial};
    use hearth_sim::program::Application;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Does 600 transactions, then `work`; the company must be consistent then.
    fn run(work: fn(&mut Company)) {
        trial::run(|memory| {
            let mut draws = Draws::new(2);
            let company = Rc::new(RefCell::new(Company::new(memory, 1, 2, &mut draws)));
            let shared = Rc::clone(&company);
            let mut application = Application::new("jbb");
            application.task("jbb", move |cpu| {
                let company = &mut *shared.borrow_mut();
                (0..600).for_each(|_| company.transact(cpu, &mut draws));
                work(company);
            });
            Built::new(application, move || company.borrow().check())
        });
    }

    #[test]
    fn orders_outlive_the_nursery() {
        run(|company| {
            let made: u64 = company.districts.iter().map(|district| district.next - ORDERS).sum();
            let young = company.orders.iter().filter(|order| order.young.is_some()).count() as u64;
            assert!(made > 200 && young > 0 && young < made, "{made} {young}");
        });
    }

    #[test]
    #[should_panic = "was not paid"]
    fn money_from_nowhere_is_noticed() {
        run(|company| company.paid[0] += 1);
    }

    #[test]
    #[should_panic = "left in the nursery"]
    fn an_order_that_is_not_copied_is_noticed() {
        run(|company| company.young.clear());
    }
}
