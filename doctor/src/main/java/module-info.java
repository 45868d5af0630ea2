/** Examines a machine: its GPUs, links, network cards and libraries. */
module io.deepep.doctor {
    requires io.deepep;
    requires transitive io.deepep.cuda;

    exports io.deepep.doctor;
}
