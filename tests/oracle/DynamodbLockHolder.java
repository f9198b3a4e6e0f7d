import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * Amazon's lock client with the settings of Hudi's DynamoDBBasedLockProvider.
 *
 * <p>Arguments: the endpoint, the table, the partition key and the lease in milliseconds.
 */
public class DynamodbLockHolder {
  public static void main(String[] args) throws Exception {
    DynamoDbClient dynamodb =
        DynamoDbClient.builder()
            .endpointOverride(URI.create(args[0]))
            .region(Region.US_EAST_1)
            .build();
    long leaseMs = Long.parseLong(args[3]);
    AmazonDynamoDBLockClient client =
        new AmazonDynamoDBLockClient(
            AmazonDynamoDBLockClientOptions.builder(dynamodb, args[1])
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .withLeaseDuration(leaseMs)
                .withHeartbeatPeriod(leaseMs / 3)
                .withCreateHeartbeatBackgroundThread(true)
                .build());
    LockItem held = null;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("lock")) {
        held = take(client, args[2], Long.parseLong(words[1]));
        System.out.println(held == null ? "busy" : "held");
      } else if (words[0].equals("unlock")) {
        System.out.println(client.releaseLock(held) ? "free" : "lost");
      }
    }
  }

  private static LockItem take(AmazonDynamoDBLockClient client, String key, long ms)
      throws InterruptedException {
    try {
      return client.acquireLock(
          AcquireLockOptions.builder(key)
              .withAdditionalTimeToWaitForLock(ms)
              .withRefreshPeriod(100L)
              .withTimeUnit(TimeUnit.MILLISECONDS)
              .build());
    } catch (LockNotGrantedException refused) {
      return null;
    }
  }
}
