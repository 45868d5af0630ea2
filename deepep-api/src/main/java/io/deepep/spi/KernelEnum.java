package io.deepep.spi;

import java.util.Locale;

/**
 * A value of an enumeration that Java and kernels share: implemented by an enum, which is written
 * to a generated header for kernels.
 */
public interface KernelEnum {
    /** The constant's name in Java. */
    String name();

    /** Its place in the list of constants. */
    int ordinal();

    /** The number behind it: its place, unless the enumeration says otherwise. */
    default int value() {
        return ordinal();
    }

    /** What stands beside it in the header, or nothing. */
    default String comment() {
        return "";
    }

    /** Its name in kernels: {@code TOO_MANY_ROWS} is {@code kTooManyRows}. */
    default String deviceName(String prefix) {
        StringBuilder text = new StringBuilder("k").append(prefix);
        for (String word : name().split("_", -1)) {
            text.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return text.toString();
    }
}
