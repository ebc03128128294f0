-- Customers and orders: indices, joins, windows, a trigger, full-text-like LIKE, recursive queries, VACUUM.
PRAGMA journal_mode = DELETE;
PRAGMA cache_size = -4000;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, region TEXT, note TEXT);
CREATE TABLE item(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer(id), made INTEGER, price INTEGER, text TEXT);
CREATE TABLE history(item INTEGER, old INTEGER, new INTEGER);
CREATE TRIGGER price_changed AFTER UPDATE OF price ON item BEGIN
  INSERT INTO history VALUES (old.id, old.price, new.price);
END;

BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO customer SELECT i, printf('customer %05d', (i * 7919) % 2003), char(65 + i % 9), substr(hex(zeroblob(60 + i % 90)), 1, 50 + i % 99) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @rows@)
INSERT INTO item SELECT i, (i * 31) % 2000 + 1, (i * 7907) % 100003, (i * 104729) % 9973, printf('%x-%o-%d', i * 2654435761, i, i % 97) FROM n;
COMMIT;
CREATE INDEX item_customer ON item(customer, made DESC);
CREATE INDEX item_text ON item(text COLLATE NOCASE);
CREATE INDEX item_price ON item(price) WHERE price > 5000;
ANALYZE;

SELECT region, count(*), sum(price), avg(price), max(made) FROM customer JOIN item ON item.customer = customer.id GROUP BY region ORDER BY region;
SELECT name, total FROM (SELECT customer, sum(price) AS total FROM item GROUP BY customer) JOIN customer ON id = customer ORDER BY total DESC, name LIMIT 10;
SELECT count(*), sum(a.price - b.price) FROM item a JOIN item b ON a.customer = b.customer AND b.made < a.made WHERE a.id % 11 = 0 AND b.id % 7 = 0;
SELECT sum(place * price), max(running) FROM (SELECT price, rank() OVER (PARTITION BY customer ORDER BY price, id) AS place, sum(price) OVER (PARTITION BY customer ORDER BY made, id) AS running FROM item);
SELECT count(*) FROM item WHERE text LIKE '%ab%' OR text LIKE '7%-_1%';
SELECT length(group_concat(text, '/')), substr(group_concat(text, '/'), 5000, 60) FROM (SELECT text FROM item ORDER BY text COLLATE NOCASE DESC, id);
SELECT length(json_group_object(name, id)), json_extract(json_group_object(name, id), '$."customer 01000"') FROM (SELECT * FROM customer ORDER BY id);
UPDATE item SET price = price + 13 WHERE customer IN (SELECT id FROM customer WHERE region IN ('A', 'D'));
DELETE FROM item WHERE id % 5 = 3;
SELECT count(*), sum(new - old) FROM history;
SELECT 'integrity', integrity_check FROM pragma_integrity_check;
SAVEPOINT s;
UPDATE customer SET note = note || upper(name) || note;
DELETE FROM item WHERE price < 4000;
ROLLBACK TO s;
RELEASE s;
SELECT count(*), sum(length(note)) FROM customer;
REINDEX;
VACUUM;
SELECT 'integrity', integrity_check FROM pragma_integrity_check;
SELECT count(*), sum(price), sum(length(text)) FROM item;
WITH RECURSIVE f(n, a, b) AS (SELECT 1, 0, 1 UNION ALL SELECT n + 1, b, (a + b) % 1000007 FROM f WHERE n < 20000) SELECT sum(a) FROM f;
SELECT price / 1000, count(*) FROM item GROUP BY 1 ORDER BY 1;
SELECT 'done';
