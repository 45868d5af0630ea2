package io.deepep.spi.posix;

/** How a JVM is allowed to call native functions. */
public final class NativeAccess {
    /** The option that Java is to be started with. */
    public static final String OPTION =
            "--enable-native-access="
                    + (NativeAccess.class.getModule().isNamed()
                            ? "io.deepep,io.deepep.host,io.deepep.cuda"
                            : "ALL-UNNAMED");

    private NativeAccess() {}
}
