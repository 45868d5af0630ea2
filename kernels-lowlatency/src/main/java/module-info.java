/** Low-latency mode; for the buffer and the planner. */
@SuppressWarnings("module") // those that see it are built later
module io.deepep.lowlatency {
    requires io.deepep;
    requires io.deepep.cuda;
    requires io.deepep.host;

    exports io.deepep.lowlatency to
            io.deepep.buffer,
            io.deepep.planner;
    exports io.deepep.lowlatency.cuda to
            io.deepep.buffer;
    exports io.deepep.lowlatency.host to
            io.deepep.buffer;
}
