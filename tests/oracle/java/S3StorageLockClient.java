package org.apache.hudi.aws.transaction.lock;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * The client of Hudi's storage-based lock for S3, which is in hudi-aws and not in the bundle.
 *
 * <p>This one asks the test, by HTTP (variable TEST_LOCK_URL), which reads and writes the object in
 * the real store on the same conditions.
 */
public class S3StorageLockClient implements StorageLockClient {
  private static final HttpClient HTTP = HttpClient.newHttpClient();
  private final String url;

  /** Hudi calls it with the writer's name, the lock's location and the writer's options. */
  public S3StorageLockClient(String owner, String location, Properties options) {
    this.url = System.getenv("TEST_LOCK_URL");
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
