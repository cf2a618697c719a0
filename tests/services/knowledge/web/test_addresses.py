"""Pitfall 17: what is not public is known in every wrapping."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.knowledge.web.exchange import is_public, parse_address

IPV4 = st.one_of(
    st.ip_addresses(v=4),
    # Chance alone hardly ever hits the ranges that matter.
    st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10", "192.168.0.0/16"]).flatmap(
        lambda network: st.integers(0, IPv4Network(network).num_addresses - 1).map(
            lambda number: IPv4Network(network)[number]
        )
    ),
)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254"),  # noqa: S104 (refused)
        *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.1.1"),
        *("198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("168.63.129.16", "::", "::1", "::7f00:1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"),
        *("100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::1", "3fff::1"),
        *("4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1"),
        "2606:4700::1%eth0",
    ],
)
def test_an_address_of_the_inside_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "169.253.0.1", "2606:4700::1", "2a00::1"],
)
def test_an_ordinary_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(IPV4)
def test_an_address_is_judged_alike_in_all_that_it_can_be_wrapped_in(address: IPv4Address) -> None:
    number = int(address)
    mapped = IPv6Address((0xFFFF << 32) | number)
    six_to_four = IPv6Address((0x2002 << 112) | (number << 80) | 1)
    translated = IPv6Address((0x64FF9B << 96) | number)
    assert {is_public(wrapped) for wrapped in (mapped, six_to_four, translated)} == {is_public(address)}
    assert not is_public(IPv6Address(number))  # IPv4-compatible
    assert not is_public(IPv6Address((0x2001 << 112) | (number ^ 0xFFFF_FFFF)))  # Teredo


@given(IPV4, st.integers(0, 3))
def test_an_address_is_known_in_every_notation(address: IPv4Address, dots: int) -> None:
    number = int(address)
    octets = [number >> shift & 255 for shift in (24, 16, 8, 0)]
    notations = [
        str(address),
        str(number),
        hex(number).upper(),
        f"0{number:o}",
        ".".join(f"0{octet:o}" for octet in octets),
        ".".join(map(hex, octets)),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
    ]
    assert {parse_address(notation + "." * dots) for notation in notations} == {address}


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_is_known(address: IPv6Address) -> None:
    assert parse_address(str(address)) == parse_address(address.exploded) == address


@pytest.mark.parametrize("host", ["example.com", "x", "1.2.3.4.5", "0xzz", "999.1.1.1", "", "1.2.3.4.example", "fade"])
def test_a_name_is_no_address(host: str) -> None:
    assert parse_address(host) is None
