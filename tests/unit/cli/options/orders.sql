-- sales.orders, for writers with Hudi 1.0 to 1.2
-- note: with these options only reconciler apply cleans: run it on a schedule
-- note: under LAZY a writer before Hudi 1.2 rolls failed writes back only when it cleans: where status shows one stuck, CALL run_clean with the retention below rolls it back
-- note: bulk_insert and insert_overwrite never fill small files, whatever is set
-- for a session that writes only this table:
-- table.version: a newer Hudi otherwise upgrades the table to its own version
SET hoodie.write.table.version=8;
SET hoodie.write.auto.upgrade=false;
-- files.target: base files grow to 120MiB
SET hoodie.parquet.max.file.size=125829120;
-- files.small: inserts fill base files below 100MiB first
SET hoodie.parquet.small.file.limit=104857600;
-- files.recordSize: assumed bytes of a record until commits show the real size
SET hoodie.copyonwrite.record.size.estimate=1024;
-- retention: the reconciler cleans; a writer's own cleaning would use its own limits
SET hoodie.clean.automatic=false;
SET hoodie.clean.async.enabled=false;
-- retention.commits: a clean that somebody runs by hand keeps the same
SET hoodie.clean.policy=KEEP_LATEST_COMMITS;
SET hoodie.clean.commits.retained=40;
-- retention.commits: commits that the retention counts stay on the active timeline
SET hoodie.keep.min.commits=50;
SET hoodie.keep.max.commits=60;
-- clustering: the reconciler clusters; while a writer's plan is pending, updates of its file groups fail
SET hoodie.clustering.inline=false;
SET hoodie.clustering.async.enabled=false;
SET hoodie.clustering.schedule.inline=false;
-- index.hudi: a writer for which the metadata table or the index is off drops it
SET hoodie.metadata.enable=true;
SET hoodie.metadata.index.column.stats.enable=true;
-- index.columns: the columns that Hudi's readers can skip files by
SET hoodie.metadata.index.column.stats.column.list=customer_id,order_ts;
-- concurrency.lock: writers and apply take the same lock; a single_writer takes none
SET hoodie.write.concurrency.mode=optimistic_concurrency_control;
SET hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider;
-- concurrency.lock.path: writers and apply take the same lock; a single_writer takes none
SET hoodie.write.lock.filesystem.path=hdfs://lake/sales/orders/.hoodie;
-- concurrency.lock.expire: minutes until a lock expires, 0 for never; all must use the same
SET hoodie.write.lock.filesystem.expire=0;
-- concurrency.lock: required of writers that share a table; EAGER would roll back others' writes
SET hoodie.clean.failed.writes.policy=LAZY;
-- retention: failed writes are rolled back although no writer cleans
SET hoodie.prewrite.cleaner.policy=ROLLBACK_FAILED_WRITES;
-- to create the table:
-- CREATE TABLE sales.orders (…) USING hudi
--   PARTITIONED BY (dt)
--   LOCATION 'hdfs://lake/sales/orders'
--   TBLPROPERTIES ('type' = 'cow', 'primaryKey' = 'id', 'preCombineField' = 'ts', 'orderingFields' = 'ts', 'hoodie.datasource.write.hive_style_partitioning' = 'true');
