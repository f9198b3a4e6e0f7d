import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.storage.StorageConfiguration;

/**
 * A lock provider of Hudi that records when another one, {@code test.lock.provider}, holds its lock.
 *
 * <p>A line of {@code test.lock.record} is {@code +} or {@code -} and nanoseconds of the machine's
 * monotonic clock, written while the lock is held.
 */
public class RecordingLock implements LockProvider<Object> {
  private final LockProvider<?> provider;
  private final Path record;
  private boolean isHeld;

  public RecordingLock(LockConfiguration configuration, StorageConfiguration<?> storage)
      throws Exception {
    String name = configuration.getConfig().getString("test.lock.provider");
    record = Paths.get(configuration.getConfig().getString("test.lock.record"));
    provider =
        (LockProvider<?>)
            Class.forName(name)
                .getConstructor(LockConfiguration.class, StorageConfiguration.class)
                .newInstance(configuration, storage);
  }

  @Override
  public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
    if (!provider.tryLock(time, unit)) {
      return false;
    }
    isHeld = true;
    write("+");
    return true;
  }

  @Override
  public void unlock() {
    recordRelease();
    provider.unlock();
  }

  @Override
  public void close() {
    recordRelease();
    provider.close();
  }

  private void recordRelease() {
    if (isHeld) {
      write("-");
      isHeld = false;
    }
  }

  private void write(String sign) {
    byte[] line = (sign + " " + System.nanoTime() + "\n").getBytes();
    try {
      Files.write(record, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
