"""Which tasks call for a tool, and which calls are right, wrong or not JSON at all?"""

import json

from .core import Attempt, Task


def spec(name, what, **arguments):
    return {"name": name, "description": what, "parameters": arguments}


WEATHER = spec("get_forecast", "Weather forecast of a place", city="string", days="integer", unit="celsius or fahrenheit")
ROUTE = spec("find_route", "Route between two places", start="string", end="string", mode="walk, bike, car or train")
CALENDAR = spec("create_event", "Adds an entry to the user's calendar", title="string", date="YYYY-MM-DD", start="HH:MM", minutes="integer")
STOCK = spec("check_stock", "How many pieces of an article are in a store", article="string", store="string")
CONVERT = spec("convert_currency", "Converts an amount at today's rate", amount="number", source="ISO code", target="ISO code")
MAIL = spec("search_mail", "Finds messages in the user's mailbox", sender="string", after="YYYY-MM-DD", text="string")
SQL = spec("run_query", "Runs a read-only SQL query", database="string", sql="string")

# request, tools on offer, the right call, thoughts that lead to it, (thought, wrong call)
REQUESTS = (
    ("Will I need an umbrella in Porto over the next three days? Celsius please.", (WEATHER, ROUTE, STOCK),
     ("get_forecast", {"city": "Porto", "days": 3, "unit": "celsius"}),
     ("The user wants to know about rain in Porto for three days. get_forecast [takes|has] a city, a number of days and a unit; [all three are in the message|they gave me all of that]. The umbrella question I can answer once the forecast [is back|has arrived].",
      "Rain over [several|three] days is a forecast question, so find_route and check_stock are out. City: Porto. Days: 3, as an integer and not as the word. Unit: they said Celsius."),
     (("An umbrella is an article, so I should look whether [one|an umbrella] is in stock somewhere in Porto. check_stock takes an article and a store.", ("check_stock", {"article": "umbrella", "store": "Porto"})),
      ("get_forecast it is. They say the next three days, and today counts as well I think, so four. I'll leave the unit at the default.", ("get_forecast", {"city": "Porto", "days": "four"})))),
    ("Put the dentist on my calendar: 14 March 2025, half past nine in the morning, 45 minutes.", (CALENDAR, MAIL, WEATHER),
     ("create_event", {"title": "Dentist", "date": "2025-03-14", "start": "09:30", "minutes": 45}),
     ("This creates an entry. The date has to be written YYYY-MM-DD, hence 2025-03-14. Half past nine in the morning is 09:30 on a 24-hour clock. 45 goes in as a number. [A short title like|Title:] Dentist is fine.",
      "create_event needs title, date, start and minutes. 14 March 2025 -> 2025-03-14; nine thirty a.m. -> 09:30; length 45. [Nothing is missing|So I have everything]. search_mail would only be of use if the date had to be looked up."),
     (("Half past nine, hmm, in some languages that means half an hour before nine, 08:30. The date is 14/03/2025.", ("create_event", {"title": "Dentist", "date": "14/03/2025", "start": "08:30", "minutes": 45})),
      ("The appointment was probably confirmed by mail, so I look for messages from the dentist before I add anything.", ("search_mail", {"sender": "dentist", "after": "2025-03-14"})))),
    ("How much is 249.90 Swiss francs in Norwegian kroner right now?", (CONVERT, STOCK),
     ("convert_currency", {"amount": 249.9, "source": "CHF", "target": "NOK"}),
     ("Exchange rates change daily, so I must not [guess|use a remembered rate]. Swiss franc is CHF, Norwegian krone is NOK. The amount is 249.9, a number.",
      "The codes: CHF for the franc (not SFR), NOK for the krone of Norway; SEK would be Sweden and DKK Denmark. Direction: from francs to kroner, so source CHF, target NOK."),
     (("Kroner has the code SEK. Source CHF, amount 249.90.", ("convert_currency", {"amount": 249.9, "source": "CHF", "target": "SEK"})),
      ("They want kroner and francs. From NOK to CHF, then I can invert the rate in my head afterwards.", ("convert_currency", {"amount": 249.9, "source": "NOK", "target": "CHF"})))),
    ("I'm at Aldhurst station. What's the quickest way to the Glass Museum by bike?", (ROUTE, WEATHER, CALENDAR),
     ("find_route", {"start": "Aldhurst station", "end": "Glass Museum", "mode": "bike"}),
     ("A route from A to B: find_route. Start is where the user is, Aldhurst station; the end is the Glass Museum. They said by bike, which is one of the [allowed|listed] modes.",
      "Three arguments. start = Aldhurst station, end = Glass Museum, mode = bike. The tool returns the quickest way by itself [as far as I can tell from its description|I assume], so there's no flag to set for that."),
     (("They are at a station, so the train is the natural mode, and from there on they can cycle.", ("find_route", {"start": "Aldhurst station", "end": "Glass Museum", "mode": "train"})),
      ("The museum comes first in importance: start at the Glass Museum and end at the station.", ("find_route", {"start": "Glass Museum", "end": "Aldhurst station", "mode": "bike"})))),
    ("Find the e-mail Salma sent me after the first of June about the lease.", (MAIL, CALENDAR, SQL),
     ("search_mail", {"sender": "Salma", "after": "2025-06-01", "text": "lease"}),
     ("search_mail has [exactly these filters|a filter for each part]: sender, a date after which to look, and text. The year isn't said. The system message gives today as 2025-07-09, so the first of June is 2025-06-01.",
      "Sender Salma, topic the lease, after 1 June. Today is 9 July 2025 by the system message, thus the most recent first of June is 2025-06-01. One word of text is enough; more words would [narrow it too much|miss a subject line like 'the contract']."),
     (("Mail is stored in a database I believe, and with SQL I can be more exact about the sender and the date.", ("run_query", {"database": "mail", "sql": "SELECT * FROM messages WHERE sender = 'Salma' AND body LIKE '%lease%'"})),
      ("Sender is Salma and the text is 'lease'. First of June in which year? Last year to be on the safe side.", ("search_mail", {"sender": "Salma", "after": "2024-01-06", "text": "lease"})))),
    ("How many orders over 500 euros did we ship in May 2025? It's in the sales database, table orders (shipped_on, amount_eur).", (SQL, STOCK, CONVERT),
     ("run_query", {"database": "sales", "sql": "SELECT COUNT(*) FROM orders WHERE amount_eur > 500 AND shipped_on >= '2025-05-01' AND shipped_on < '2025-06-01'"}),
     ("A count with two conditions. 'Over 500' is strict, so amount_eur > 500. For the month I use a half-open range from 1 May to 1 June, which is right whether shipped_on is a date or a timestamp.",
      "run_query on sales. COUNT(*) from orders, amount_eur greater than 500, shipped_on within May 2025. BETWEEN '2025-05-01' AND '2025-05-31' would lose the last day if it's a timestamp, so better >= and <."),
     (("Orders in May: month(shipped_on) = 5. And at least 500 euros. That should do it, the year is the current one anyway.", ("run_query", {"database": "sales", "sql": "SELECT * FROM orders WHERE MONTH(shipped_on) = 5 AND amount_eur >= 500"})),
      ("Orders are articles that are in stock. I check the stock of 'orders' in the store 'sales'.", ("check_stock", {"article": "orders", "store": "sales"})))),
)


def write(call):
    """A call as the policy writes it."""
    return json.dumps({"name": call[0], "arguments": call[1]}, ensure_ascii=False)


def breakages(call):
    """The ways a call ends up as something that is not JSON, or not a call."""
    good = write(call)
    return (
        good[:-1],
        good.replace('"', "'"),
        good[:-2] + ",}}",
        json.dumps({"name": call[0], "arguments": json.dumps(call[1])}),
        json.dumps({"function": call[0], "args": call[1]}),
        f"{call[0]}({', '.join(f'{key}={value!r}' for key, value in call[1].items())})",
        good.replace('{"name"', '{name', 1),
        "```json\n" + good + "\n```",
    )


def tasks():
    """All the tool tasks. The answers are the text inside <tool_call>."""
    made = []
    for request, tools, call, thoughts, wrong in REQUESTS:
        listing = "\n".join(json.dumps(tool) for tool in tools)
        system = (
            "Today is 2025-07-09. You may call one of these tools:\n" + listing
            + '\nThink in <think></think>, then write <tool_call>{"name": ..., "arguments": {...}}</tool_call>.'
        )
        prompt = [{"role": "system", "content": system}, {"role": "user", "content": request}]
        right = [Attempt(thought, write(call)) for thought in thoughts]
        bad = [Attempt(thought, write(other)) for thought, other in wrong]
        bad += [Attempt(thoughts[at % 2], text, "bad_call") for at, text in enumerate(breakages(call))]
        made.append(Task("tool call", "tools", prompt, write(call), right, bad, extra={"tools": [tool["name"] for tool in tools]}))
    return made
