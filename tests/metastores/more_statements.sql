SELECT 1 FROM facts.hive_orc h JOIN facts.own_csv c ON h.ds = c.name WHERE c.id = 1;
