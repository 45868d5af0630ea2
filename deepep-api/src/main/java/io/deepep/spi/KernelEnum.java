package io.deepep.spi;

import java.util.Locale;

/**
 * A constant that Java and kernels share. Enums implement this, and are written to a generated
 * header for kernels.
 */
public interface KernelEnum {
    /** The constant's name in Java. */
    String name();

    /** The position of the constant in the enum. */
    int ordinal();

    /** The number that stands for the constant: its position, unless the enum overrides this. */
    default int value() {
        return ordinal();
    }

    /** The comment beside the constant in the header; empty for none. */
    default String comment() {
        return "";
    }

    /** The constant's name in kernels: {@code TOO_MANY_ROWS} is {@code kTooManyRows}. */
    default String deviceName(String prefix) {
        StringBuilder text = new StringBuilder("k").append(prefix);
        for (String word : name().split("_", -1)) {
            text.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return text.toString();
    }
}
