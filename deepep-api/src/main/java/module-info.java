/**
 * The API that inference engines compile against. The implementation is found at run time: the
 * module {@code io.deepep.buffer}, and {@code io.deepep.communicator} for ranks in several
 * processes.
 *
 * @uses io.deepep.spi.BufferProvider
 * @uses io.deepep.spi.CommunicatorProvider
 * @uses io.deepep.spi.CudaProvider
 */
@SuppressWarnings("module") // those that see spi are built later
module io.deepep {
    exports io.deepep;
    exports io.deepep.error;
    exports io.deepep.observe;
    exports io.deepep.spi to
            io.deepep.buffer,
            io.deepep.communicator,
            io.deepep.cuda,
            io.deepep.host,
            io.deepep.lowlatency,
            io.deepep.normal,
            io.deepep.planner,
            io.deepep.testkit;
    exports io.deepep.spi.posix to
            io.deepep.buffer,
            io.deepep.cuda,
            io.deepep.doctor,
            io.deepep.host;

    uses io.deepep.spi.BufferProvider;
    uses io.deepep.spi.CommunicatorProvider;
    uses io.deepep.spi.CudaProvider;
}
