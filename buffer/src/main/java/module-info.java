/** The implementation of the module {@code io.deepep}. Not for engines. */
@SuppressWarnings("module") // the planner is built later
module io.deepep.buffer {
    requires io.deepep;
    requires io.deepep.cuda;
    requires io.deepep.host;
    requires io.deepep.lowlatency;
    requires io.deepep.normal;
    requires jdk.jfr;

    exports io.deepep.buffer.memory to
            io.deepep.planner;

    provides io.deepep.spi.BufferProvider with
            io.deepep.buffer.RankBufferProvider;
}
