import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hudi.client.transaction.lock.StorageBasedLockProvider;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.metrics.HoodieLockMetrics;
import org.apache.hudi.client.transaction.lock.models.HeartbeatManager;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockProviderHeartbeatManager;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.util.Functions;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hudi's own StorageBasedLockProvider, told by lines on standard input to lock and unlock.
 *
 * <p>Its client for S3 is in hudi-aws, which the bundle lacks: this one asks the test, by HTTP,
 * which reads and writes the object in the real store on the same conditions.
 */
public class StorageLockHolder {
  private static final HttpClient HTTP = HttpClient.newHttpClient();

  public static void main(String[] args) throws Exception {
    TypedProperties options = new TypedProperties();
    options.setProperty("hoodie.base.path", "s3://bucket/table");
    options.setProperty("hoodie.write.lock.storage.validity.timeout.secs", args[1]);
    options.setProperty("hoodie.write.lock.storage.renew.interval.secs", "1");
    StorageBasedLockProvider provider = open(args[0], options);
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

  private static StorageBasedLockProvider open(String url, TypedProperties options)
      throws Exception {
    Functions.Function3<String, Long, Supplier<Boolean>, HeartbeatManager> heartbeats =
        LockProviderHeartbeatManager::new;
    Functions.Function3<String, String, TypedProperties, StorageLockClient> clients =
        (owner, path, properties) -> new Client(url);
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

  private static class Client implements StorageLockClient {
    private final String url;

    Client(String url) {
      this.url = url;
    }

    @Override
    public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
      HttpResponse<String> answer = send(HttpRequest.newBuilder(URI.create(url)).GET());
      if (answer.statusCode() == 404) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      java.io.InputStream body = new java.io.ByteArrayInputStream(answer.body().getBytes());
      String version = answer.headers().firstValue("ETag").get();
      StorageLockFile file = StorageLockFile.createFromStream(body, version);
      return Pair.of(LockGetResult.SUCCESS, Option.of(file));
    }

    @Override
    public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
        StorageLockData data, Option<StorageLockFile> previous) {
      byte[] bytes = StorageLockFile.toByteArray(data);
      HttpRequest.Builder request =
          HttpRequest.newBuilder(URI.create(url))
              .PUT(HttpRequest.BodyPublishers.ofByteArray(bytes));
      if (previous.isPresent()) {
        request.header("If-Match", previous.get().getVersionId());
      }
      HttpResponse<String> answer = send(request);
      if (answer.statusCode() != 200) {
        return Pair.of(LockUpsertResult.ACQUIRED_BY_OTHERS, Option.empty());
      }
      String version = answer.headers().firstValue("ETag").get();
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, version)));
    }

    @Override
    public Option<String> readObject(String path, boolean checkExistsFirst) {
      return Option.empty();
    }

    @Override
    public boolean writeObject(String path, String content) {
      return false;
    }

    @Override
    public void close() {}

    private static HttpResponse<String> send(HttpRequest.Builder request) {
      try {
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
      } catch (Exception problem) {
        throw new IllegalStateException(problem);
      }
    }
  }
}
