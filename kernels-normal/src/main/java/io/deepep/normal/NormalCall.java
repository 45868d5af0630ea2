package io.deepep.normal;

import io.deepep.spi.KernelEnum;

/** What a rank does in a call: {@link HeaderWord#OP}. */
public enum NormalCall implements KernelEnum {
    /** A dispatch with new routing. */
    DISPATCH(1, "dispatch"),
    /** A dispatch with the routing of a handle. */
    CACHED_DISPATCH(2, "cached dispatch"),
    /** A combine. */
    COMBINE(3, "combine");

    private final int value;
    private final String text;

    NormalCall(int value, String text) {
        this.value = value;
        this.text = text;
    }

    /** The name of a number in messages. */
    public static String textOf(long value) {
        for (NormalCall call : values()) {
            if (call.value == value) {
                return call.text;
            }
        }
        return "operation " + value;
    }

    /** What it is called in messages. */
    public String text() {
        return text;
    }

    @Override
    public int value() {
        return value;
    }
}
