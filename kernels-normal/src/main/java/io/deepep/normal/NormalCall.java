package io.deepep.normal;

import io.deepep.spi.KernelEnum;

/** What a rank does in a call: {@link HeaderWord#OP}. */
public enum NormalCall implements KernelEnum {
    /** A dispatch with new routing. */
    DISPATCH("dispatch"),
    /** A dispatch with the routing of a handle. */
    CACHED_DISPATCH("cached dispatch"),
    /** A combine. */
    COMBINE("combine");

    private final String text;

    NormalCall(String text) {
        this.text = text;
    }

    /** The name of a number in messages. */
    public static String textOf(long value) {
        for (NormalCall call : values()) {
            if (call.value() == value) {
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
        return 1 + ordinal(); // 0 is no call
    }
}
