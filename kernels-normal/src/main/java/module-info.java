/** Normal mode; for the buffer and the planner. */
@SuppressWarnings("module") // those that see it are built later
module io.deepep.normal {
    requires io.deepep;
    requires io.deepep.cuda;
    requires io.deepep.host;

    exports io.deepep.normal to
            io.deepep.buffer,
            io.deepep.planner;
    exports io.deepep.normal.cuda to
            io.deepep.buffer;
    exports io.deepep.normal.host to
            io.deepep.buffer;
}
