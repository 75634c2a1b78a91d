package oauth

import "strings"

// phraseWords are 128 short words that do not look like each other.
var phraseWords = strings.Fields(`
	acorn amber anchor apple arrow autumn badge bamboo basket beacon birch bison blanket bottle breeze bridge
	butter cabin cactus camel candle canyon carpet castle cedar cherry circle clover cobalt comet copper coral
	cotton crane crystal daisy desert dolphin donkey dragon eagle echo ember engine fabric falcon feather fiddle
	forest fossil garden ginger glacier goblet granite hammer harbor hazel helmet heron honey igloo island ivory
	jacket jasmine jungle kettle kitten ladder lagoon lantern lemon lizard lotus magnet maple marble meadow melon
	mirror mitten monkey mosaic mustard nectar needle nickel nutmeg oasis ocean olive orbit orchid otter oyster
	paddle panda paper pebble pepper pigeon pillow planet pocket prairie puzzle quartz rabbit radish raven ribbon
	river rocket saddle salmon saturn silver sparrow summit thunder timber tulip tunnel umbrella velvet walnut willow
`)
