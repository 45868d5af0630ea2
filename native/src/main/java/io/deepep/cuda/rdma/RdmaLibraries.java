package io.deepep.cuda.rdma;

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

    private static final String VERBS = "libibverbs.so.1";
    private static final String MLX5 = "libmlx5.so.1";

    /** See {@link Command#argumentsFor}. */
    private static final MemoryLayout[] COMMAND = {ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG};

    final RdmaFunction getDeviceList;
    final RdmaFunction freeDeviceList;
    final RdmaFunction getDeviceName;
    final RdmaFunction openDevice;
    final RdmaFunction closeDevice;
    final RdmaFunction queryDevice;
    final RdmaFunction queryPort;
    final RdmaFunction queryGid;
    final RdmaFunction allocPd;
    final RdmaFunction deallocPd;
    final RdmaFunction regMr;
    final RdmaFunction regDmabufMr;
    final RdmaFunction deregMr;
    final RdmaFunction createAh;
    final RdmaFunction destroyAh;

    final RdmaFunction initObj;
    final RdmaFunction allocUar;
    final RdmaFunction freeUar;
    final RdmaFunction regUmem;
    final RdmaFunction regUmemEx;
    final RdmaFunction deregUmem;
    final RdmaFunction queryEqn;
    final RdmaFunction generalCommand;
    final RdmaFunction createObject;
    final RdmaFunction modifyObject;
    final RdmaFunction destroyObject;

    private static volatile RdmaLibraries loaded;

    private RdmaLibraries(NativeLibrary verbs, NativeLibrary mlx5) {
        getDeviceList = RdmaFunction.object(verbs, "ibv_get_device_list", ADDRESS);
        freeDeviceList = RdmaFunction.nothing(verbs, "ibv_free_device_list", ADDRESS);
        getDeviceName = RdmaFunction.object(verbs, "ibv_get_device_name", ADDRESS);
        openDevice = RdmaFunction.object(verbs, "ibv_open_device", ADDRESS);
        closeDevice = RdmaFunction.status(verbs, "ibv_close_device", ADDRESS);
        queryDevice = RdmaFunction.status(verbs, "ibv_query_device", ADDRESS, ADDRESS);
        queryPort = RdmaFunction.status(verbs, "ibv_query_port", ADDRESS, JAVA_BYTE, ADDRESS);
        queryGid =
                RdmaFunction.status(verbs, "ibv_query_gid", ADDRESS, JAVA_BYTE, JAVA_INT, ADDRESS);
        allocPd = RdmaFunction.object(verbs, "ibv_alloc_pd", ADDRESS);
        deallocPd = RdmaFunction.status(verbs, "ibv_dealloc_pd", ADDRESS);
        regMr =
                RdmaFunction.object(
                        verbs,
                        "ibv_reg_mr_iova2",
                        ADDRESS,
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT);
        regDmabufMr =
                RdmaFunction.object(
                        verbs,
                        "ibv_reg_dmabuf_mr",
                        ADDRESS,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT);
        deregMr = RdmaFunction.status(verbs, "ibv_dereg_mr", ADDRESS);
        createAh = RdmaFunction.object(verbs, "ibv_create_ah", ADDRESS, ADDRESS);
        destroyAh = RdmaFunction.status(verbs, "ibv_destroy_ah", ADDRESS);

        initObj = RdmaFunction.status(mlx5, "mlx5dv_init_obj", ADDRESS, JAVA_LONG);
        allocUar = RdmaFunction.object(mlx5, "mlx5dv_devx_alloc_uar", ADDRESS, JAVA_INT);
        freeUar = RdmaFunction.nothing(mlx5, "mlx5dv_devx_free_uar", ADDRESS);
        regUmem =
                RdmaFunction.object(
                        mlx5, "mlx5dv_devx_umem_reg", ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        regUmemEx = RdmaFunction.object(mlx5, "mlx5dv_devx_umem_reg_ex", ADDRESS, ADDRESS);
        deregUmem = RdmaFunction.status(mlx5, "mlx5dv_devx_umem_dereg", ADDRESS);
        queryEqn = RdmaFunction.status(mlx5, "mlx5dv_devx_query_eqn", ADDRESS, JAVA_INT, ADDRESS);
        generalCommand = RdmaFunction.status(mlx5, "mlx5dv_devx_general_cmd", COMMAND);
        createObject = RdmaFunction.object(mlx5, "mlx5dv_devx_obj_create", COMMAND);
        modifyObject = RdmaFunction.status(mlx5, "mlx5dv_devx_obj_modify", COMMAND);
        destroyObject = RdmaFunction.status(mlx5, "mlx5dv_devx_obj_destroy", ADDRESS);
    }

    /**
     * The libraries.
     *
     * @throws DeepEpUnavailableException if one is missing, or too old
     */
    static RdmaLibraries get() {
        RdmaLibraries known = loaded;
        if (known == null) {
            known = new RdmaLibraries(require(VERBS), require(MLX5));
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

    private static NativeLibrary require(String file) {
        return NativeLibrary.find(file)
                .orElseThrow(
                        () ->
                                new DeepEpUnavailableException(
                                        file + " cannot be loaded", CURE, null));
    }
}
