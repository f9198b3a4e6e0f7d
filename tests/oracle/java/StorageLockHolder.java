import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hudi.aws.transaction.lock.S3StorageLockClient;
import org.apache.hudi.client.transaction.lock.StorageBasedLockProvider;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.metrics.HoodieLockMetrics;
import org.apache.hudi.client.transaction.lock.models.HeartbeatManager;
import org.apache.hudi.client.transaction.lock.models.LockProviderHeartbeatManager;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.util.Functions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hudi's own StorageBasedLockProvider, told by lines on standard input to lock and unlock.
 *
 * <p>Argument: the validity in seconds.
 */
public class StorageLockHolder {
  public static void main(String[] args) throws Exception {
    TypedProperties options = new TypedProperties();
    options.setProperty("hoodie.base.path", "s3://bucket/table");
    options.setProperty("hoodie.write.lock.storage.validity.timeout.secs", args[0]);
    options.setProperty("hoodie.write.lock.storage.renew.interval.secs", "1");
    StorageBasedLockProvider provider = open(options);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("lock")) {
        long ms = Long.parseLong(words[1]);
        System.out.println(provider.tryLock(ms, TimeUnit.MILLISECONDS) ? "held" : "busy");
      } else if (words[0].equals("unlock")) {
        provider.unlock();
        System.out.println("free");
      }
    }
  }

  private static StorageBasedLockProvider open(TypedProperties options)
      throws Exception {
    Functions.Function3<String, Long, Supplier<Boolean>, HeartbeatManager> heartbeats =
        LockProviderHeartbeatManager::new;
    Functions.Function3<String, String, TypedProperties, StorageLockClient> clients =
        S3StorageLockClient::new;
    Constructor<StorageBasedLockProvider> constructor =
        StorageBasedLockProvider.class.getDeclaredConstructor(
            String.class,
            TypedProperties.class,
            Functions.Function3.class,
            Functions.Function3.class,
            Logger.class,
            HoodieLockMetrics.class);
    constructor.setAccessible(true);
    Logger logger = LoggerFactory.getLogger("lock");
    return constructor.newInstance("hudi-writer", options, heartbeats, clients, logger, null);
  }
}
