"""Reads iCalendar with libical, and writes it as JSON: components with their properties and components.

Input are calendars, each behind a line with its length in bytes; output is a line for each.
"""
import ctypes
import json
import sys
from ctypes import c_char_p, c_int, c_void_p

lib = ctypes.CDLL("libical.so.3")


def function(name, result, *arguments):
    f = getattr(lib, name)
    f.restype, f.argtypes = result, list(arguments)
    return f


parse = function("icalparser_parse_string", c_void_p, c_char_p)
kind_of = function("icalcomponent_isa", c_int, c_void_p)
kind_name = function("icalcomponent_kind_to_string", c_char_p, c_int)
kind_named = function("icalcomponent_string_to_kind", c_int, c_char_p)
first_component = function("icalcomponent_get_first_component", c_void_p, c_void_p, c_int)
next_component = function("icalcomponent_get_next_component", c_void_p, c_void_p, c_int)
first_property = function("icalcomponent_get_first_property", c_void_p, c_void_p, c_int)
next_property = function("icalcomponent_get_next_property", c_void_p, c_void_p, c_int)
property_name = function("icalproperty_get_property_name", c_char_p, c_void_p)
property_value = function("icalproperty_get_value", c_void_p, c_void_p)
as_string = function("icalproperty_get_value_as_string", c_char_p, c_void_p)
value_kind = function("icalvalue_isa", c_int, c_void_p)
value_kind_name = function("icalvalue_kind_to_string", c_char_p, c_int)
value_text = function("icalvalue_get_text", c_char_p, c_void_p)
count_errors = function("icalcomponent_count_errors", c_int, c_void_p)
check = function("icalrestriction_check", c_int, c_void_p)
free = function("icalcomponent_free", None, c_void_p)

ANY_COMPONENT, ANY_PROPERTY = kind_named(b"ANY"), 0  # the latter has no name


def read(component):
    properties = {}
    p = first_property(component, ANY_PROPERTY)
    while p:
        value = property_value(p)
        is_text = value and value_kind_name(value_kind(value)) == b"TEXT"
        text = value_text(value) if is_text else as_string(p)
        properties.setdefault(property_name(p).decode(), []).append((text or b"").decode())
        p = next_property(component, ANY_PROPERTY)
    components = []
    c = first_component(component, ANY_COMPONENT)
    while c:
        components.append(c)
        c = next_component(component, ANY_COMPONENT)
    return {"kind": kind_name(kind_of(component)).decode(), "properties": properties, "components": [read(c) for c in components]}


stream = sys.stdin.buffer
while True:
    length = stream.readline()
    if not length:
        break
    calendar = parse(stream.read(int(length)))
    if not calendar:
        print(json.dumps({"kind": "", "errors": 1}))
        continue
    answer = read(calendar)
    answer["errors"] = count_errors(calendar)
    answer["valid"] = check(calendar) == 1
    print(json.dumps(answer))
    free(calendar)
