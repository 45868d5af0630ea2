/**
 * The library as one dependency: the API, and what implements it on the host and on GPUs.
 *
 * <p>GPU code is in artifacts of the same name with a classifier, as {@code linux-x86_64-cuda13}.
 */
module io.deepep.library {
    requires transitive io.deepep;
    requires io.deepep.buffer;
}
