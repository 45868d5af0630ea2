/** Predicts the buffer sizes, bytes and times of a model on a cluster. */
module io.deepep.planner {
    requires transitive io.deepep;
    requires io.deepep.buffer;
    requires io.deepep.lowlatency;
    requires io.deepep.normal;
    requires transitive io.deepep.testkit;

    exports io.deepep.planner;
}
