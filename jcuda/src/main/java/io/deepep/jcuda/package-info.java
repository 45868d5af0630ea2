/**
 * Converts JCuda's memory, streams and events to the library's, and back. All of them are views:
 * nothing is copied or owned. Needs JCuda 12.6 on the class path; the rest of the library does not.
 */
package io.deepep.jcuda;
