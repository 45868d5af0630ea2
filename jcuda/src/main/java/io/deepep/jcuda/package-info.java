/**
 * JCuda's memory, streams and events as the library's, and back: views on both sides, nothing is
 * copied or owned. JCuda 12 is expected on the class path; the rest of the library does not need
 * it.
 */
package io.deepep.jcuda;
