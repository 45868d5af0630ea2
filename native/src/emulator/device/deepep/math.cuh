// Stands in for the header of the same name.
#pragma once

namespace deepep {

inline float approximate_reciprocal(float v) { return 1.0f / v; }

}  // namespace deepep
