import java.util.Timer;
import java.util.TimerTask;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;

/**
 * A Hive Metastore whose database has the tables of locks, and that ends locks nobody renews.
 *
 * <p>In production its own scripts create the tables, and its house keeper ends locks by the same
 * call. Its settings are system properties here.
 */
public class LockingMetastore {
  public static void main(String[] args) throws Throwable {
    HiveConf conf = new HiveConf();
    TxnDbUtil.prepDb(conf);
    TxnStore store = TxnUtils.getTxnStore(conf);
    TimerTask houseKeeper =
        new TimerTask() {
          @Override
          public void run() {
            store.performTimeOuts();
          }
        };
    new Timer(true).schedule(houseKeeper, 1000, 1000);
    HiveMetaStore.main(args);
  }
}
