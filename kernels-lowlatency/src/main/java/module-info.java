/** Low-latency mode; for the buffer. */
@SuppressWarnings("module") // the buffer is built later
module io.deepep.lowlatency {
    requires io.deepep;
    requires io.deepep.cuda;
    requires io.deepep.host;

    exports io.deepep.lowlatency to
            io.deepep.buffer;
    exports io.deepep.lowlatency.cuda to
            io.deepep.buffer;
    exports io.deepep.lowlatency.host to
            io.deepep.buffer;
}
