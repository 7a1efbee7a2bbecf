"""Knows what to buy for every instruction: searches for it, opens it, chooses the options, buys."""

import ast
import json
import sys

PLANS = {}


def main():
    left = None
    for line in sys.stdin:
        page, _, available = json.loads(line)["messages"][-1]["content"].rpartition("Available Actions:\n")
        plan = next(plan for instruction, plan in PLANS.items() if instruction in page)
        left = list(plan["options"]) if left is None else left
        offered = ast.literal_eval(available)
        said = plan["form"].format(action(plan, offered["has_search_bar"], offered["clickables"], left))
        print(json.dumps({"role": "assistant", "content": said}), flush=True)


def action(plan, searchable, clickables, left):
    if searchable:
        return f"search[{plan['search']}]"
    if "buy now" in clickables:
        while left:
            value = left.pop(0)
            if value in clickables:
                return f"click[{value}]"
        return "click[buy now]"
    if plan["asin"] in clickables:
        return f"click[{plan['asin']}]"
    return f"click[{'next >' if 'next >' in clickables else 'back to search'}]"


if __name__ == "__main__":
    main()
