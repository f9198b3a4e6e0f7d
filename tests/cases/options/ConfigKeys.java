import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Enumeration;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Prints every ConfigProperty that a Hudi bundle declares, a line each: its key, then its
 * alternatives. The files keys_VERSION.txt beside this one are what it printed:
 *
 * java -cp "$BUNDLE:$SPARK_HOME/jars/*" ConfigKeys.java $BUNDLE > keys_1.2.0.txt
 */
public class ConfigKeys {
  public static void main(String[] args) throws Exception {
    TreeSet<String> keys = new TreeSet<>();
    Class<?> property = Class.forName("org.apache.hudi.common.config.ConfigProperty");
    try (JarFile jar = new JarFile(args[0])) {
      for (Enumeration<JarEntry> e = jar.entries(); e.hasMoreElements();) {
        String name = e.nextElement().getName();
        if (!name.startsWith("org/apache/hudi/") || !name.matches(".*(Config|Configs|Options|Option|Properties)\\$?(Config)?\\.class")) {
          continue;
        }
        try {
          Class<?> type = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'));
          Object self = null;
          for (Field field : type.getDeclaredFields()) {
            if (field.getName().equals("MODULE$")) {
              self = field.get(null);
            }
          }
          for (Field field : type.getDeclaredFields()) {
            boolean isStatic = Modifier.isStatic(field.getModifiers());
            if (field.getType() != property || !isStatic && self == null) {
              continue;
            }
            field.setAccessible(true);
            Object value = field.get(isStatic ? null : self);
            if (value == null) {
              continue;
            }
            StringBuilder line = new StringBuilder((String) property.getMethod("key").invoke(value));
            for (Object other : (List<?>) property.getMethod("getAlternatives").invoke(value)) {
              line.append(' ').append(other);
            }
            keys.add(line.toString());
          }
        } catch (Throwable problem) {
          System.err.println(name + ": " + problem);
        }
      }
    }
    keys.forEach(System.out::println);
    System.exit(0);
  }
}
