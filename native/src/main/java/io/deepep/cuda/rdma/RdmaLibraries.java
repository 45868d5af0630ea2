package io.deepep.cuda.rdma;

import static io.deepep.cuda.rdma.RdmaFunction.nothing;
import static io.deepep.cuda.rdma.RdmaFunction.object;
import static io.deepep.cuda.rdma.RdmaFunction.status;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.NativeLibrary;
import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.MemoryLayout;
import java.util.Optional;

/** The functions of libibverbs and libmlx5 that are used, bound when they are first needed. */
final class RdmaLibraries {
    static final String CURE =
            "install rdma-core (packages libibverbs1 and ibverbs-providers), or use another network";

    /** See {@link Command#argumentsFor}. */
    private static final MemoryLayout[] COMMAND = {ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG};

    private final NativeLibrary verbs = NativeLibrary.require("libibverbs.so.1", CURE);
    private final NativeLibrary mlx5 = NativeLibrary.require("libmlx5.so.1", CURE);

    final RdmaFunction getDeviceList = object(verbs, "ibv_get_device_list", ADDRESS);
    final RdmaFunction freeDeviceList = nothing(verbs, "ibv_free_device_list", ADDRESS);
    final RdmaFunction getDeviceName = object(verbs, "ibv_get_device_name", ADDRESS);
    final RdmaFunction openDevice = object(verbs, "ibv_open_device", ADDRESS);
    final RdmaFunction closeDevice = status(verbs, "ibv_close_device", ADDRESS);
    final RdmaFunction queryDevice = status(verbs, "ibv_query_device", ADDRESS, ADDRESS);
    final RdmaFunction queryPort = status(verbs, "ibv_query_port", ADDRESS, JAVA_BYTE, ADDRESS);
    final RdmaFunction queryGid =
            status(verbs, "ibv_query_gid", ADDRESS, JAVA_BYTE, JAVA_INT, ADDRESS);
    final RdmaFunction allocPd = object(verbs, "ibv_alloc_pd", ADDRESS);
    final RdmaFunction deallocPd = status(verbs, "ibv_dealloc_pd", ADDRESS);
    final RdmaFunction regMr =
            object(verbs, "ibv_reg_mr_iova2", ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_INT);
    final RdmaFunction regDmabufMr =
            object(
                    verbs,
                    "ibv_reg_dmabuf_mr",
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_INT,
                    JAVA_INT);
    final RdmaFunction deregMr = status(verbs, "ibv_dereg_mr", ADDRESS);
    final RdmaFunction createAh = object(verbs, "ibv_create_ah", ADDRESS, ADDRESS);
    final RdmaFunction destroyAh = status(verbs, "ibv_destroy_ah", ADDRESS);

    final RdmaFunction initObj = status(mlx5, "mlx5dv_init_obj", ADDRESS, JAVA_LONG);
    final RdmaFunction allocUar = object(mlx5, "mlx5dv_devx_alloc_uar", ADDRESS, JAVA_INT);
    final RdmaFunction freeUar = nothing(mlx5, "mlx5dv_devx_free_uar", ADDRESS);
    final RdmaFunction regUmem =
            object(mlx5, "mlx5dv_devx_umem_reg", ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
    final RdmaFunction regUmemEx = object(mlx5, "mlx5dv_devx_umem_reg_ex", ADDRESS, ADDRESS);
    final RdmaFunction deregUmem = status(mlx5, "mlx5dv_devx_umem_dereg", ADDRESS);
    final RdmaFunction queryEqn = status(mlx5, "mlx5dv_devx_query_eqn", ADDRESS, JAVA_INT, ADDRESS);
    final RdmaFunction generalCommand = status(mlx5, "mlx5dv_devx_general_cmd", COMMAND);
    final RdmaFunction createObject = object(mlx5, "mlx5dv_devx_obj_create", COMMAND);
    final RdmaFunction modifyObject = status(mlx5, "mlx5dv_devx_obj_modify", COMMAND);
    final RdmaFunction destroyObject = status(mlx5, "mlx5dv_devx_obj_destroy", ADDRESS);

    private static volatile RdmaLibraries loaded;

    private RdmaLibraries() {}

    /**
     * The libraries.
     *
     * @throws DeepEpUnavailableException if one is missing, or too old
     */
    static RdmaLibraries get() {
        RdmaLibraries known = loaded;
        if (known == null) {
            known = new RdmaLibraries();
            loaded = known;
        }
        return known;
    }

    /** Why they cannot be used; empty if they can. */
    static Optional<String> unavailabilityReason() {
        try {
            get();
            return Optional.empty();
        } catch (DeepEpUnavailableException missing) {
            return Optional.of(missing.reason());
        }
    }
}
