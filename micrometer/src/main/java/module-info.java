/** Micrometer meters of dispatch and combine. */
@SuppressWarnings({
    "requires-automatic",
    "requires-transitive-automatic"
}) // Micrometer has no descriptor
module io.deepep.micrometer {
    requires transitive io.deepep;
    requires transitive micrometer.core;

    exports io.deepep.micrometer;
}
