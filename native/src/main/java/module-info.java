/** The GPU runtime; for the modules of the library. */
@SuppressWarnings("module") // those that see it are built later
module io.deepep.cuda {
    requires io.deepep;

    exports io.deepep.cuda to
            io.deepep.buffer,
            io.deepep.lowlatency,
            io.deepep.normal;
    exports io.deepep.cuda.nvshmem to
            io.deepep.buffer;
    exports io.deepep.cuda.topology to
            io.deepep.buffer;

    provides io.deepep.spi.CudaProvider with
            io.deepep.cuda.CudaHandles;
}
