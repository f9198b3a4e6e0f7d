import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/**
 * A lock provider of Hudi, told by lines on standard input to lock and unlock.
 *
 * <p>Arguments: its class, and options as {@code key=value}.
 */
public class LockHolder {
  public static void main(String[] args) throws Exception {
    TypedProperties options = new TypedProperties();
    for (int i = 1; i < args.length; i++) {
      int end = args[i].indexOf('=');
      options.setProperty(args[i].substring(0, end), args[i].substring(end + 1));
    }
    LockProvider<?> provider =
        (LockProvider<?>)
            Class.forName(args[0])
                .getConstructor(LockConfiguration.class, StorageConfiguration.class)
                .newInstance(
                    new LockConfiguration(options),
                    new HadoopStorageConfiguration(new Configuration()));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("lock")) {
        System.out.println(take(provider, Long.parseLong(words[1])) ? "held" : "busy");
      } else if (words[0].equals("unlock")) {
        provider.unlock();
        System.out.println("free");
      }
    }
  }

  /** Try again until the time is over, as the writers' LockManager does. */
  private static boolean take(LockProvider<?> provider, long ms) throws InterruptedException {
    long end = System.nanoTime() + ms * 1_000_000;
    do {
      try {
        if (provider.tryLock(Math.max(ms, 1000), TimeUnit.MILLISECONDS)) {
          return true;
        }
      } catch (org.apache.hudi.exception.HoodieLockException refused) {
        System.err.println(refused);
      }
      Thread.sleep(50);
    } while (System.nanoTime() < end);
    return false;
  }
}
