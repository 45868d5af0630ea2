/** Normal mode; for the buffer. */
@SuppressWarnings("module") // the buffer is built later
module io.deepep.normal {
    requires io.deepep;
    requires io.deepep.cuda;
    requires io.deepep.host;

    exports io.deepep.normal to
            io.deepep.buffer;
    exports io.deepep.normal.cuda to
            io.deepep.buffer;
    exports io.deepep.normal.host to
            io.deepep.buffer;
}
