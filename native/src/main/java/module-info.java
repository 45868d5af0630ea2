/** The GPU runtime; for the modules of the library. */
@SuppressWarnings("module") // those that see it are built later
module io.deepep.cuda {
    requires io.deepep;

    exports io.deepep.cuda to
            io.deepep.buffer,
            io.deepep.doctor,
            io.deepep.lowlatency,
            io.deepep.normal;
    exports io.deepep.cuda.ibgda to
            io.deepep.buffer,
            io.deepep.doctor,
            io.deepep.lowlatency,
            io.deepep.normal;
    exports io.deepep.cuda.rdma to
            io.deepep.buffer,
            io.deepep.doctor;
    exports io.deepep.cuda.kernel to
            io.deepep.lowlatency,
            io.deepep.normal;
    exports io.deepep.cuda.memory to
            io.deepep.buffer,
            io.deepep.doctor,
            io.deepep.lowlatency,
            io.deepep.normal;
    exports io.deepep.cuda.nvshmem to
            io.deepep.buffer,
            io.deepep.doctor;
    exports io.deepep.cuda.topology; // records of doctor's report

    provides io.deepep.spi.CudaProvider with
            io.deepep.cuda.CudaHandles;
}
