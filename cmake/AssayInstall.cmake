# `cmake --install`: public headers, the package that find_package(assay) reads, and the docs. Programs and plugins install
# themselves where they are made.
include(CMakePackageConfigHelpers)
file(STRINGS ${PROJECT_SOURCE_DIR}/core/include/assay/abi/common.h versions REGEX "define ASSAY_ABI_M(AJ|IN)OR")
foreach(line ${versions})
  string(REGEX MATCH "ASSAY_(ABI_M[A-Z]+) ([0-9]+)u" ignored "${line}")
  set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()
# The build folder has the package at the same place, so that a plugin can be built against a program that is not installed.
set(package lib/cmake/assay)
set(here ${PROJECT_BINARY_DIR}/${package})
configure_file(${PROJECT_SOURCE_DIR}/cmake/assayConfig.cmake.in ${here}/assayConfig.cmake @ONLY)
write_basic_package_version_file(${here}/assayConfigVersion.cmake COMPATIBILITY SameMajorVersion)
foreach(file AssayPlugin.cmake plugin_exports.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${file} ${here}/${file} COPYONLY)
endforeach()

install(DIRECTORY core/include/assay DESTINATION include)
install(TARGETS assay_abi EXPORT assayTargets)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${package})
export(EXPORT assayTargets NAMESPACE assay:: FILE ${here}/assayTargets.cmake)
install(FILES ${here}/assayConfig.cmake ${here}/assayConfigVersion.cmake ${here}/AssayPlugin.cmake
  ${here}/plugin_exports.map DESTINATION ${package})
install(DIRECTORY docs/ DESTINATION share/doc/assay)
