# `cmake --install`: public headers, the package that find_package(assay) reads, and the docs. Programs and plugins install
# themselves where they are made.
include(CMakePackageConfigHelpers)
file(STRINGS ${PROJECT_SOURCE_DIR}/core/include/assay/abi/common.h versions REGEX "define ASSAY_ABI_M(AJ|IN)OR")
foreach(line ${versions})
  string(REGEX MATCH "ASSAY_(ABI_M[A-Z]+) ([0-9]+)u" ignored "${line}")
  set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/assayConfig.cmake.in ${PROJECT_BINARY_DIR}/assayConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/assayConfigVersion.cmake COMPATIBILITY SameMajorVersion)

set(package lib/cmake/assay)
install(DIRECTORY core/include/assay DESTINATION include)
install(TARGETS assay_abi EXPORT assayTargets)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
  cmake/AssayPlugin.cmake cmake/plugin_exports.map DESTINATION ${package})
install(DIRECTORY docs/ DESTINATION share/doc/assay)
