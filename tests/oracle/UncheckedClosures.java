// Spark's cleaner of closures, which does nothing. Of every function that a job is given, it reads
// the code from its jar, looks for a return out of Scala's console, and serializes it for a try. No
// function here comes from a console, and those that cannot be serialized fail when they are sent.
// Real Hudi gives so many that all this is a sixth of its work on a handful of rows.

package org.apache.spark.util;

public final class ClosureCleaner$ {
    public static final ClosureCleaner$ MODULE$ = new ClosureCleaner$();

    public void clean(Object closure, boolean checkSerializable, boolean cleanTransitively) {}

    public boolean clean$default$2() {
        return true;
    }

    public boolean clean$default$3() {
        return true;
    }
}
