/** The CPU runtime; for the modules of the library. */
@SuppressWarnings("module") // those that see it are built later
module io.deepep.host {
    requires io.deepep;
    // An option that users give to make sums faster.
    requires static jdk.incubator.vector;

    exports io.deepep.host to
            io.deepep.buffer,
            io.deepep.lowlatency,
            io.deepep.normal;
}
