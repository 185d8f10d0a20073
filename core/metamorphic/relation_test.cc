#include "core/metamorphic/relation.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::metamorphic {
namespace {

TEST(RelationTable, EveryRelationStandsAtItsPlaceUnderANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const RelationInfo& info : relation_table()) {
    EXPECT_EQ(&info_of(info.relation), &info) << info.name;
    EXPECT_EQ(parse_relation(info.name), info.relation);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Relation::kSaveLoad) + 1);
  EXPECT_FALSE(parse_relation("prefix-cache").has_value());
}

}  // namespace
}  // namespace assay::metamorphic
