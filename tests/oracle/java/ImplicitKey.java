import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.util.hash.HashID;

/** Prints what Hudi's implicit lock providers derive from each argument, a table's base path. */
public class ImplicitKey {
  public static void main(String[] paths) {
    for (String path : paths) {
      System.out.println(
          HashID.generateXXHashAsString(FSUtils.s3aToS3(path), HashID.Size.BITS_64));
    }
  }
}
