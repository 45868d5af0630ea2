/** JCuda's memory, streams and events as the library's, and back. */
@SuppressWarnings({
    "requires-automatic",
    "requires-transitive-automatic"
}) // JCuda has no descriptor
module io.deepep.jcuda {
    requires transitive io.deepep;
    requires transitive jcuda;

    exports io.deepep.jcuda;
}
